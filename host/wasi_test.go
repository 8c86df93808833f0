package host_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/host/internal/wasmtime"
)

// The parts of WASI that toolchains import, in mixed versions, as a component that calls one of them by name. Types are
// shortened; each function has its real type.
const wasiImports = `
	(import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
	(alias export $error "error" (type $error-t))
	(import "wasi:io/poll@0.2.3" (instance $poll
		(export "pollable" (type $p (sub resource)))
		(export "[method]pollable.block" (func (param "self" (borrow $p))))
		(export "poll" (func (param "in" (list (borrow $p))) (result (list u32))))))
	(alias export $poll "pollable" (type $pollable-t))
	(import "wasi:io/streams@0.2.10" (instance $streams
		(alias outer 1 $error-t (type $e'))
		(export "error" (type $e (eq $e')))
		(type $se' (variant (case "last-operation-failed" (own $e)) (case "closed")))
		(export "stream-error" (type $se (eq $se')))
		(export "output-stream" (type $out (sub resource)))
		(export "input-stream" (type $in (sub resource)))
		(export "[method]output-stream.blocking-write-and-flush" (func (param "self" (borrow $out)) (param "contents" (list u8)) (result (result (error $se)))))))
	(alias export $streams "output-stream" (type $out-t))
	(import "wasi:cli/environment@0.2.12" (instance $env
		(export "get-environment" (func (result (list (tuple string string)))))
		(export "initial-cwd" (func (result (option string))))))
	(import "wasi:cli/stdout@0.2.6" (instance $stdout
		(alias outer 1 $out-t (type $o'))
		(export "output-stream" (type $o (eq $o')))
		(export "get-stdout" (func (result (own $o))))))
	(import "wasi:cli/exit@0.2.0" (instance $exit (export "exit" (func (param "status" (result))))))
	(import "wasi:clocks/monotonic-clock@0.2.1" (instance $clock
		(alias outer 1 $pollable-t (type $p'))
		(export "pollable" (type $p (eq $p')))
		(export "now" (func (result u64)))
		(export "subscribe-duration" (func (param "when" u64) (result (own $p))))))
	(import "wasi:random/random@0.2.0" (instance $random (export "get-random-u64" (func (result u64)))))
	(import "wasi:random/insecure-seed@0.2.4" (instance $seed (export "insecure-seed" (func (result (tuple u64 u64))))))
	(import "wasi:filesystem/types@0.2.10" (instance $fs
		(type $code' (enum "access" "would-block" "not-permitted"))
		(export "error-code" (type $code (eq $code')))
		(export "descriptor" (type $d (sub resource)))
		(export "[method]descriptor.create-directory-at" (func (param "self" (borrow $d)) (param "path" string) (result (result (error $code)))))))
	(alias export $fs "descriptor" (type $d-t))
	(import "wasi:filesystem/preopens@0.2.10" (instance $preopens
		(alias outer 1 $d-t (type $d'))
		(export "descriptor" (type $d (eq $d')))
		(export "get-directories" (func (result (list (tuple (own $d) string)))))))
	(import "wasi:sockets/network@0.2.0" (instance $net
		(type $code' (enum "unknown" "access-denied" "not-supported"))
		(export "error-code" (type $code (eq $code')))
		(export "network" (type $n (sub resource)))))
	(alias export $net "network" (type $network-t))
	(alias export $net "error-code" (type $net-code))
	(import "wasi:sockets/instance-network@0.2.0" (instance $instance-network
		(alias outer 1 $network-t (type $n'))
		(export "network" (type $n (eq $n')))
		(export "instance-network" (func (result (own $n))))))
	(import "wasi:sockets/ip-name-lookup@0.2.2" (instance $lookup
		(alias outer 1 $network-t (type $n')) (export "network" (type $n (eq $n')))
		(alias outer 1 $net-code (type $c')) (export "error-code" (type $c (eq $c')))
		(export "resolve-address-stream" (type $s (sub resource)))
		(export "resolve-addresses" (func (param "network" (borrow $n)) (param "name" string) (result (result (own $s) (error $c)))))))
`

// toolsTypes are the types of stile:extension/tools, in order of dependency.
var toolsTypes = [][2]string{
	{"denial", `(record (field "binding" string) (field "operation" string) (field "reason" string) (field "remedy" string))`},
	{"annotations", `(record (field "read-only" bool) (field "destructive" bool) (field "idempotent" bool) (field "open-world" bool))`},
	{"definition", `(record (field "name" string) (field "description" string) (field "input-schema" string)
		(field "output-schema" (option string)) (field "annotations" $annotations))`},
	{"problem", `(record (field "path" string) (field "message" string))`},
	{"failure", `(record (field "name" string) (field "message" string) (field "stack" string))`},
	{"error", `(variant (case "unknown-tool" string) (case "invalid-input" (list $problem)) (case "denied" $denial)
		(case "exhausted" string) (case "failed" $failure))`},
}

// exportTools exports two core functions of the instance $m as stile:extension/tools. As with component toolchains, an inner
// component names the types.
func exportTools() string {
	const describe = `(result (list $definition))`
	const call = `(param "tool" string) (param "input" string) (param "env" (own $env)) (result (result string (error $error)))`
	of := func(where, text string) string { return strings.ReplaceAll(text, "$", "$"+where+"-") }
	outer, with := `(alias export $stile-env "env" (type $t-env))`, `(with "env" (type $t-env))`
	imported, exported := `(import "env" (type $i-env (sub resource)))`, `(export $e-env "env" (type $i-env))`
	for _, t := range toolsTypes {
		name, text := t[0], t[1]
		if name == "denial" {
			outer += `(alias export $stile-types "denial" (type $t-denial))`
		} else {
			outer += fmt.Sprintf("(type $t-%s %s)", name, of("t", text))
		}
		with += fmt.Sprintf("(with %q (type $t-%s))", name, name)
		imported += fmt.Sprintf("(type $i-%[1]s' %[2]s) (import %[1]q (type $i-%[1]s (eq $i-%[1]s')))", name, of("i", text))
		exported += fmt.Sprintf("(type $e-%[1]s' %[2]s) (export $e-%[1]s %[1]q (type $e-%[1]s'))", name, of("e", text))
	}
	return `
	(component $shim ` + imported + `
		(import "describe" (func $describe ` + of("i", describe) + `))
		(import "call" (func $call ` + of("i", call) + `))
		` + exported + `
		(export "describe" (func $describe) (func ` + of("e", describe) + `))
		(export "call" (func $call) (func ` + of("e", call) + `)))
	` + outer + `
	(func $t-describe ` + of("t", describe) + ` (canon lift (core func $m "stile:extension/tools@0.1.0#describe") (memory $memory)))
	(func $t-call ` + of("t", call) + ` (canon lift (core func $m "stile:extension/tools@0.1.0#call")` + options + `))
	(instance $exported (instantiate $shim ` + with + ` (with "describe" (func $t-describe)) (with "call" (func $t-call))))
	(export "stile:extension/tools@0.1.0" (instance $exported))`
}

// wasiComponent is an extension that calls the WASI functions in body when it starts.
func wasiComponent(t *testing.T, wasi, lowered, imports, body string) []byte {
	t.Helper()
	return lateComponent(t, wasi, lowered, imports, body, "")
}

// lateComponent is one that also calls those in late when its tool is called.
func lateComponent(t *testing.T, wasi, lowered, imports, body, late string) []byte {
	t.Helper()
	tools := guest{more: `(type $late (func)) (table (export "late") 1 funcref)`, call: `(call_indirect (type $late) (i32.const 0)) ` + returns}
	wasm, err := wasmtime.WAT("(component" + wasi + `
	(import "stile:capability/env@0.1.0" (instance $stile-env (export "env" (type (sub resource)))))
	(import "stile:capability/types@0.1.0" (instance $stile-types
		(type $d (record (field "binding" string) (field "operation" string) (field "reason" string) (field "remedy" string)))
		(export "denial" (type (eq $d)))))
	(core ` + strings.Replace(tools.core(), "(module", "(module $tools", 1)[1:] + `
	(core instance $m (instantiate $tools))
	(alias core export $m "memory" (core memory $memory))
	(alias core export $m "cabi_realloc" (core func $realloc))
	` + lowered + `
	(core module $code (import "m" "memory" (memory 1)) (import "m" "late" (table 1 funcref)) ` + imports + ` (elem (i32.const 0) $late)
		(func $late ` + late + `) (func $run ` + body + `) (start $run))
	(core instance (instantiate $code (with "m" (instance $m)) (with "w" (instance $w))))
	` + exportTools() + ")")
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

const options = ` (memory $memory) (realloc $realloc)`

func TestEmptyWorld(t *testing.T) {
	h := newHost(t, host.Options{})
	for _, c := range []struct {
		name, lowered, imports, body string
		want                         string
	}{
		{
			"no environment", `(core func $f (canon lower (func $env "get-environment")` + options + `)) (core instance $w (export "f" (func $f)))`,
			`(import "w" "f" (func $f (param i32)))`, `(call $f (i32.const 64)) (if (i32.load (i32.const 68)) (then unreachable))`, "",
		},
		{
			"no directory", `(core func $f (canon lower (func $preopens "get-directories")` + options + `)) (core instance $w (export "f" (func $f)))`,
			`(import "w" "f" (func $f (param i32)))`, `(call $f (i32.const 64)) (if (i32.load (i32.const 68)) (then unreachable))`, "",
		},
		{
			"no working directory", `(core func $f (canon lower (func $env "initial-cwd")` + options + `)) (core instance $w (export "f" (func $f)))`,
			`(import "w" "f" (func $f (param i32)))`, `(call $f (i32.const 64)) (if (i32.load8_u (i32.const 64)) (then unreachable))`, "",
		},
		{
			"the clock moves from above 0", `(core func $f (canon lower (func $clock "now"))) (core instance $w (export "f" (func $f)))`,
			`(import "w" "f" (func $f (result i64)))`, `(if (i64.ne (call $f) (i64.const 1000000000)) (then unreachable)) (if (i64.ne (call $f) (i64.const 1000010000)) (then unreachable))`, "",
		},
		{
			"stdout takes text",
			`(core func $f (canon lower (func $stdout "get-stdout"))) (core func $g (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")` + options + `))
			 (core instance $w (export "f" (func $f)) (export "g" (func $g)))`,
			`(import "w" "f" (func $f (result i32))) (import "w" "g" (func $g (param i32 i32 i32 i32)))`,
			`(i32.store8 (i32.const 64) (i32.const 9)) (call $g (call $f) (i32.const 0) (i32.const 4) (i32.const 64)) (if (i32.load8_u (i32.const 64)) (then unreachable))`, "",
		},
		{
			"names are not looked up",
			`(core func $f (canon lower (func $instance-network "instance-network"))) (core func $g (canon lower (func $lookup "resolve-addresses")` + options + `))
			 (core instance $w (export "f" (func $f)) (export "g" (func $g)))`,
			`(import "w" "f" (func $f (result i32))) (import "w" "g" (func $g (param i32 i32 i32 i32)))`,
			`(call $g (call $f) (i32.const 0) (i32.const 4) (i32.const 64)) (if (i32.ne (i32.load8_u (i32.const 64)) (i32.const 1)) (then unreachable)) (if (i32.ne (i32.load8_u (i32.const 68)) (i32.const 1)) (then unreachable))`, "",
		},
		{
			"the insecure seed is fixed", `(core func $f (canon lower (func $seed "insecure-seed")` + options + `)) (core instance $w (export "f" (func $f)))`,
			`(import "w" "f" (func $f (param i32)))`, `(call $f (i32.const 64)) (if (i64.ne (i64.load (i32.const 64)) (i64.const -6062858187063324507)) (then unreachable))`, "",
		},
		{
			"randomness of a seed, while it starts", `(core func $f (canon lower (func $random "get-random-u64"))) (core instance $w (export "f" (func $f)))`,
			`(import "w" "f" (func $f (result i64)))`, `(if (i64.eq (call $f) (call $f)) (then unreachable))`, "",
		},
		{
			"a wait is over at once, and time has passed",
			`(core func $f (canon lower (func $clock "subscribe-duration"))) (core func $g (canon lower (func $poll "[method]pollable.block"))) (core func $h (canon lower (func $clock "now")))
			 (core instance $w (export "f" (func $f)) (export "g" (func $g)) (export "h" (func $h)))`,
			`(import "w" "f" (func $f (param i64) (result i32))) (import "w" "g" (func $g (param i32))) (import "w" "h" (func $h (result i64)))`,
			`(call $g (call $f (i64.const 4000000000000))) (if (i64.lt_u (call $h) (i64.const 4001000000000)) (then unreachable))`, "",
		},
		{
			"a wait for ever",
			`(core func $f (canon lower (func $clock "subscribe-duration"))) (core func $g (canon lower (func $poll "[method]pollable.block")))
			 (core instance $w (export "f" (func $f)) (export "g" (func $g)))`,
			`(import "w" "f" (func $f (param i64) (result i32))) (import "w" "g" (func $g (param i32)))`, `(call $g (call $f (i64.const -1)))`,
			"waits for a time that never comes",
		},
		{
			"exit", `(core func $f (canon lower (func $exit "exit"))) (core instance $w (export "f" (func $f)))`,
			`(import "w" "f" (func $f (param i32)))`, `(call $f (i32.const 1))`, "called wasi:cli/exit",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			component, err := h.Load(t.Context(), wasiComponent(t, wasiImports, c.lowered, c.imports, c.body))
			if err != nil {
				t.Fatal(err)
			}
			listed := 0
			for _, i := range component.Imports() {
				if i.Kind == "wasi" {
					listed++
				}
			}
			if want := strings.Count(wasiImports, "(import "); listed != want {
				t.Errorf("%d interfaces of the empty world are listed, not %d", listed, want)
			}
			_, err = component.Call(t.Context(), "t", nil, nil)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				var trap *host.TrapError
				t.Errorf("got %v (trap %t), want %q", err, errors.As(err, &trap), c.want)
			}
		})
	}
}

// TestFormerNames loads a component that was made when a parameter of the contract had another name.
func TestFormerNames(t *testing.T) {
	h := newHost(t, host.Options{})
	for name, fits := range map[string]bool{"length": true, "len": true, "size": false} {
		random := `(import "stile:capability/random@0.1.0" (instance
			(export "random" (type $r (sub resource)))
			(type $d' (record (field "binding" string) (field "operation" string) (field "reason" string) (field "remedy" string))) (export "denial" (type $d (eq $d')))
			(type $e' (variant (case "denied" $d) (case "revoked" string) (case "expired") (case "exhausted" string) (case "timed-out") (case "too-large" u64)
				(case "not-found" string) (case "already-exists" string) (case "conflict" string) (case "invalid" string) (case "unavailable" string) (case "interrupted" string))) (export "error" (type $e (eq $e')))
			(export "[method]random.bytes" (func (param "self" (borrow $r)) (param "` + name + `" u32) (result (result (list u8) (error $e)))))))`
		_, err := h.Load(t.Context(), wasiComponent(t, random, `(core instance $w)`, "", ""))
		if (err == nil) != fits {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestStrangeWorlds loads and calls components whose imports only resemble WASI.
func TestStrangeWorlds(t *testing.T) {
	h := newHost(t, host.Options{})
	const none = `(core instance $w)`
	for _, c := range []struct {
		name, wasi, lowered string
		want                string
	}{
		{
			"a handle for an environment",
			`(import "wasi:cli/environment@0.2.0" (instance (export "r" (type $r (sub resource))) (export "get-environment" (func (result (own $r))))))`, none,
			"wasi:cli/environment@0.2.0#get-environment: its result holds a handle",
		},
		{
			"a handle in an environment",
			`(import "wasi:clocks/wall-clock@0.2.0" (instance (export "r" (type $r (sub resource)))
				(type $t' (record (field "a" (own $r)))) (export "t" (type $t (eq $t'))) (export "now" (func (result $t)))))`, none,
			"wasi:clocks/wall-clock@0.2.0#now: its type is func() -> record<own<r>>, and WASI's is func() -> record<u64,u32>",
		},
		{
			"an env in WASI", "", `(alias export $stile-env "env" (type $stile-env-t))
			(import "wasi:cli/environment@0.2.0" (instance (alias outer 1 $stile-env-t (type $e)) (export "env" (type (eq $e)))))` + none,
			"component refused",
		},
		{
			"a function of WASI's that takes an env", "", `(alias export $stile-env "env" (type $stile-env-t))
			(import "wasi:cli/take@0.2.0" (instance (alias outer 1 $stile-env-t (type $e)) (export "take" (func (param "env" (list (borrow $e)))))))` + none,
			"wasi:cli/take@0.2.0#take: its type has a handle of stile:capability/env@0.1.0/env",
		},
		{
			"a function of WASI's that makes an env", "", `(alias export $stile-env "env" (type $stile-env-t))
			(import "wasi:cli/make@0.2.0" (instance (alias outer 1 $stile-env-t (type $e)) (export "make" (func (result (own $e))))))` + none,
			"wasi:cli/make@0.2.0#make: its type has a handle of stile:capability/env@0.1.0/env",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			component, err := h.Load(t.Context(), wasiComponent(t, c.wasi, c.lowered, "", ""))
			if err == nil {
				_, err = component.Call(t.Context(), "t", nil, nil)
			}
			var refused *host.LoadError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %T %v, want %q", err, err, c.want)
			}
		})
	}
}

// TestHandlesOfWASI transfers handles, alone and inside other values, more often than the limit of handles per call.
func TestHandlesOfWASI(t *testing.T) {
	const wasi = `(import "wasi:http/types@0.2.0" (instance $types
		(export "r" (type $r (sub resource)))
		(export "make" (func (result (own $r))))
		(export "take" (func (param "a" (own $r)) (param "b" (option (own $r))) (param "c" (tuple (own $r) u8)) (param "d" (result (own $r) (error u8)))))))`
	h := newHost(t, host.Options{Limits: host.Limits{Handles: 10}})
	c, err := h.Load(t.Context(), wasiComponent(t, wasi, `(core func $make (canon lower (func $types "make"))) (core func $take (canon lower (func $types "take")))
		(core instance $w (export "make" (func $make)) (export "take" (func $take)))`,
		`(import "w" "make" (func $make (result i32))) (import "w" "take" (func $take (param i32 i32 i32 i32 i32 i32 i32)))`,
		`(local $n i32) (loop $l
			(call $take (call $make) (i32.const 1) (call $make) (call $make) (i32.const 0) (i32.const 0) (call $make))
			(br_if $l (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 100))))`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(t.Context(), "t", nil, nil); err != nil {
		t.Error(err)
	}
}

// TestObserveEmptyWorld sees the functions of WASI too.
func TestObserveEmptyWorld(t *testing.T) {
	h := newHost(t, host.Options{})
	c, err := h.Load(t.Context(), wasiComponent(t, wasiImports, `(core func $f (canon lower (func $clock "now"))) (core func $g (canon lower (func $random "get-random-u64")))
		(core instance $w (export "f" (func $f)) (export "g" (func $g)))`,
		`(import "w" "f" (func $f (result i64))) (import "w" "g" (func $g (result i64)))`, `(drop (call $f)) (drop (call $g)) unreachable`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tools(t.Context()); err == nil {
		t.Error("describe did not need its start function")
	}
	var seen []string
	approved := []abi.Definition{{Name: "t", InputSchema: "{}"}}
	_, err = c.Do(t.Context(), host.Request{Tool: "t", Approved: approved, Observe: func(o host.Operation) {
		seen = append(seen, fmt.Sprintf("%s#%s %t", o.Interface, o.Func, o.Err != nil))
	}})
	want := []string{"wasi:clocks/monotonic-clock@0.2.1#now false", "wasi:random/random@0.2.0#get-random-u64 false"}
	if err == nil || !slices.Equal(seen, want) {
		t.Errorf("saw %q, want %q", seen, want)
	}
}
