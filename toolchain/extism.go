package toolchain

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/wasmbin"
)

// The modules from which Extism plug-ins import: the kernel with the functions of every host, and the functions of one program.
const (
	extismHost = "extism:host/env"
	extismUser = "extism:host/user"
)

// The bindings that a plug-in uses. The first two are those of the manifest's short form.
const (
	ExtismHTTP    = "network" // of http, for http_request
	ExtismKV      = "kv"      // of kv, for config_get, var_get and var_set
	ExtismConsole = "console" // of console, for log_*; without it, plug-ins learn that logging is off
)

var (
	//go:embed extism/kernel.wat
	kernelText string
	//go:embed extism/tools.wat
	toolsText string
	//go:embed extism/fail.wat
	failText string
	//go:embed extism/kv.wat
	kvText string
	//go:embed extism/http.wat
	httpText string
	//go:embed extism/log.wat
	logText string
)

// extismFunc is a function of the Extism host. part is the text that has it: of the kernel, or of the adapter's parts.
type extismFunc struct{ params, results, part string }

// extismFuncs are all functions that plug-ins can import, as of Extism's kernel 1.7 and its runtime for Rust.
var extismFuncs = sync.OnceValue(func() map[string]extismFunc {
	return map[string]extismFunc{
		"alloc":            {"I", "I", kernelText},
		"free":             {"I", "", kernelText},
		"length":           {"I", "I", kernelText},
		"length_unsafe":    {"I", "I", kernelText},
		"load_u8":          {"I", "i", kernelText},
		"load_u64":         {"I", "I", kernelText},
		"store_u8":         {"Ii", "", kernelText},
		"store_u64":        {"II", "", kernelText},
		"input_set":        {"II", "", kernelText},
		"input_offset":     {"", "I", kernelText},
		"input_length":     {"", "I", kernelText},
		"input_load_u8":    {"I", "i", kernelText},
		"input_load_u64":   {"I", "I", kernelText},
		"output_set":       {"II", "", kernelText},
		"output_offset":    {"", "I", kernelText},
		"output_length":    {"", "I", kernelText},
		"error_set":        {"I", "", kernelText},
		"error_get":        {"", "I", kernelText},
		"memory_bytes":     {"", "I", kernelText},
		"reset":            {"", "", kernelText},
		"config_get":       {"I", "I", kvText},
		"var_get":          {"I", "I", kvText},
		"var_set":          {"II", "", kvText},
		"http_request":     {"II", "I", httpText},
		"http_status_code": {"", "i", httpText},
		"http_headers":     {"", "I", httpText},
		"get_log_level":    {"", "i", logText},
		"log_trace":        {"I", "", logText},
		"log_debug":        {"I", "", logText},
		"log_info":         {"I", "", logText},
		"log_warn":         {"I", "", logText},
		"log_error":        {"I", "", logText},
	}
})

// extismImports are the functions of capabilities that each part of the adapter uses, by identifier.
var extismImports = sync.OnceValue(func() map[string]map[string]string {
	return map[string]map[string]string{
		failText: {"$get-stderr": wasiImports()["$get-stderr"].name, "$put": wasiImports()["$put"].name},
		kvText: {
			"$kv-get":    "stile:capability/kv@0.1.0#get",
			"$kv-value":  "stile:capability/kv@0.1.0#[method]bucket.get",
			"$kv-set":    "stile:capability/kv@0.1.0#[method]bucket.set",
			"$kv-delete": "stile:capability/kv@0.1.0#[method]bucket.delete",
		},
		httpText: {
			"$http-get":      "stile:capability/http@0.1.0#get",
			"$start":         "stile:capability/http@0.1.0#[method]client.start",
			"$subscribe":     "stile:capability/http@0.1.0#[method]exchange.subscribe",
			"$exchange-head": "stile:capability/http@0.1.0#[method]exchange.head",
			"$exchange-blob": "stile:capability/http@0.1.0#[method]exchange.blob",
			"$drop-exchange": "stile:capability/http@0.1.0#[resource-drop]exchange",
			"$wait":          "stile:capability/poll@0.1.0#[method]pollable.block",
			"$drop-wait":     "stile:capability/poll@0.1.0#[resource-drop]pollable",
			"$blob-size":     "stile:capability/blob@0.1.0#[method]blob.size",
			"$blob-text":     "stile:capability/blob@0.1.0#[method]blob.text",
			"$blob-bytes":    "stile:capability/blob@0.1.0#[method]blob.bytes",
			"$drop-blob":     "stile:capability/blob@0.1.0#[resource-drop]blob",
		},
		logText: {
			"$env-names":   "stile:capability/env@0.1.0#[method]env.names",
			"$console-get": "stile:capability/console@0.1.0#get",
			"$console-log": "stile:capability/console@0.1.0#[method]console.log",
		},
	}
})

// plugin is an Extism plug-in while a component is made of it.
type plugin struct {
	module *coreModule
	used   []string // functions of the Extism host, in byte order
	parts  []string // of the adapter
	tools  []string
	inits  []string // exports that a call begins with

	described map[string]ExtismTool // by name
}

// describe leaves only these tools.
func (p *plugin) describe(tools []ExtismTool) error {
	p.described = map[string]ExtismTool{}
	var missing []string
	for _, t := range tools {
		if !slices.Contains(p.tools, t.Name) {
			missing = append(missing, t.Name)
		}
		for _, schema := range []*json.RawMessage{&t.Input, &t.Output} {
			var compact bytes.Buffer
			if *schema == nil {
				continue
			}
			if err := json.Compact(&compact, *schema); err != nil {
				return coreErrorf(CoreExport, []string{t.Name}, "a schema is not JSON, of the tool: %s")
			}
			*schema = compact.Bytes()
		}
		p.described[t.Name] = t
	}
	if len(tools) == 0 {
		return coreErrorf(CoreExport, nil, "no tools of the Extism plug-in are named; it can have %s", printable.Short(strings.Join(p.tools, ", "), 500))
	}
	if missing != nil {
		return coreErrorf(CoreExport, missing, "the Extism plug-in exports no functions that can be these tools (it has %s): %s", printable.Short(strings.Join(p.tools, ", "), 500))
	}
	p.tools = slices.Sorted(maps.Keys(p.described))
	return nil
}

// IsExtism reports whether wasm is an Extism plug-in: a core module that imports from Extism's host.
func IsExtism(wasm []byte) bool {
	m, err := readCore(wasm)
	return err == nil && m.isExtism()
}

// MadeOfExtism reports whether a component says that [Componentize] made it of an Extism plug-in. Any component can say so.
func MadeOfExtism(component []byte) bool {
	sections, err := wasmbin.ReadSections(component, wasmbin.ComponentHeader)
	return err == nil && slices.ContainsFunc(sections, func(s wasmbin.Section) bool {
		return s.ID == wasmbin.SectionCustom && bytes.Equal(s.Body, wasmbin.CustomSection("producers", extismProducers()).Body)
	})
}

func (m *coreModule) isExtism() bool {
	return slices.ContainsFunc(m.listed, func(l coreListed) bool { return l.module == extismHost || l.module == extismUser })
}

// extismTool matches the names that tools can have.
var extismTool = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

const maxExtismTools = 1000

// ExtismTool describes a tool of an Extism plug-in, of which the plug-in itself says nothing.
type ExtismTool struct {
	Name        string // of the exported function
	Description string // default: that it is a function of a plug-in
	// Input is a JSON Schema. The plug-in then gets the input as JSON, which fits the schema. Without one, it gets a text or bytes.
	Input json.RawMessage
	// Output is a JSON Schema of what the plug-in returns, which then is JSON. Without one, the result is a text or bytes.
	Output json.RawMessage
	// Annotations are hints about the tool. Default: that it changes something if the plug-in can set variables or make requests.
	Annotations *abi.Annotations
}

// ComponentizeExtism is [Componentize] for an Extism plug-in of which these functions are tools, and no others.
func ComponentizeExtism(world *abi.World, core []byte, tools []ExtismTool) ([]byte, error) {
	m, err := readCore(core)
	if err == nil && !m.isExtism() {
		err = coreErrorf(CoreImport, nil, "the module is no Extism plug-in: it imports nothing from %s", extismHost)
	}
	if err == nil {
		core, err = componentizePlugin(world, m, core, tools)
	}
	if err != nil {
		return nil, fmt.Errorf("componentize: %w", err)
	}
	return core, nil
}

// componentizePlugin makes a component of a plug-in, whose bytes are core. Without tools, all functions that can be some are tools.
func componentizePlugin(world *abi.World, m *coreModule, core []byte, tools []ExtismTool) ([]byte, error) {
	p, err := readPlugin(m)
	if err == nil && tools != nil {
		err = p.describe(tools)
	}
	if err != nil {
		return nil, err
	}
	if err := wasmtime.ModuleValidate(validator(), core); err != nil {
		return nil, malformed(err)
	}
	return p.componentize(world)
}

// readPlugin finds out what a plug-in uses and offers.
func readPlugin(m *coreModule) (*plugin, error) {
	if err := m.checkMemory(); err != nil {
		return nil, err
	}
	p := &plugin{module: m}
	var unknown, wrong []string
	for _, name := range slices.Sorted(maps.Keys(m.imports)) {
		module, function, _ := strings.Cut(name, "#")
		f, ok := extismFuncs()[function]
		old, isOld := preview1Funcs()[function]
		switch {
		case module == preview1 && isOld:
			if m.imports[name] != encoded(old.params, old.results) {
				wrong = append(wrong, name)
			}
		case module != extismHost || !ok:
			unknown = append(unknown, name)
		case m.imports[name] != encoded(types(f.params), types(f.results)):
			wrong = append(wrong, name)
		default:
			p.used = append(p.used, function)
			if f.part != kernelText && !slices.Contains(p.parts, f.part) {
				p.parts = append(p.parts, f.part)
			}
		}
	}
	if unknown != nil {
		return nil, coreErrorf(CoreImport, unknown, "the Extism plug-in imports what no host of %s has, such as functions of one program or another module: %s", extismHost)
	}
	if wrong != nil {
		return nil, coreErrorf(CoreType, wrong, "the Extism plug-in imports these with another type than they have: %s")
	}
	slices.Sort(p.parts)
	if slices.Contains(p.parts, kvText) || slices.Contains(p.parts, httpText) {
		p.parts = append(p.parts, failText)
	}
	for name := range m.exports {
		f, ok := m.function(name)
		if ok && f.params == "" && (f.results == "" || f.results == "\x7f") && extismTool.MatchString(name) && !strings.HasPrefix(name, "asyncify_") && name != "hs_exit" {
			p.tools = append(p.tools, name)
		}
		if name == visiblePages || name == kernelPages {
			return nil, coreErrorf(CoreExport, []string{name}, "the Extism plug-in exports names that a component of one needs: %s")
		}
	}
	slices.Sort(p.tools)
	if _, starts := m.exports["_start"]; starts && len(p.tools) == 0 {
		return nil, coreErrorf(CoreCommand, nil, "the Extism plug-in is a command: it has only _start, which runs once and ends. Build a library (a reactor) that exports functions: -buildmode=c-shared with Go, crate-type cdylib with Rust")
	}
	if len(p.tools) == 0 || len(p.tools) > maxExtismTools {
		return nil, coreErrorf(CoreExport, nil, "the Extism plug-in exports %d functions without parameters that can be tools, and an extension has 1 to %d", len(p.tools), maxExtismTools)
	}
	for _, name := range []string{"_initialize", "__wasm_call_ctors"} {
		if f, ok := m.function(name); ok && f == (coreFunc{}) {
			p.inits = append(p.inits, name)
			break
		}
	}
	if f, ok := m.function("hs_init"); ok && f == (coreFunc{params: "\x7f\x7f"}) {
		p.inits = append(p.inits, "hs_init")
	}
	return p, nil
}

// componentize wraps the plug-in into a component.
func (p *plugin) componentize(world *abi.World) ([]byte, error) {
	used := map[string]bool{}
	for _, part := range p.parts {
		for _, name := range extismImports()[part] {
			used[name] = true
		}
	}
	var a *adapter
	if old := p.module.oldFuncs(); len(old) > 0 {
		a = newAdapter(old, false) // a plug-in has no files
	}
	l, err := linkTo(withWASI(world), used, a, start{})
	if err != nil {
		return nil, err
	}
	offered := map[string]coreImport{}
	for _, c := range l.core() {
		offered[c.name] = c
	}
	for name := range used {
		if _, ok := offered[name]; !ok {
			return nil, coreErrorf(CoreImport, []string{name}, "world %s lacks what the Extism plug-in needs: %s", world.Name)
		}
	}
	core, err := p.module.withKernel()
	if err != nil {
		return nil, err
	}
	texts := p.texts()
	w := &componentWriter{linkage: l, ids: map[declaration]string{}, exported: map[declaration]bool{}}
	m := p.module
	imports := p.indirects(a)
	w.line("(component $stile")
	w.line("(core module $user)")
	if a != nil {
		w.module(a.text())
	}
	w.module(texts.fill(kernelText))
	w.module(p.adapterText(texts, offered))
	w.indirectModules(imports)
	for n, i := range l.imports {
		w.importInterface(n, i)
	}
	with := w.give(m, imports)
	w.line("(core instance $user (instantiate $user%s))", with)
	w.line("(alias core export $user %q (core memory $memory))", coreMemory)
	w.line(`(core instance $kernel (instantiate $kernel (with "guest" (instance $user))))`)
	w.line(`(alias core export $kernel "cabi_realloc" (core func $realloc))`)
	w.lowerImports()
	if a != nil {
		w.line(`(core instance $adapter (instantiate $adapter (with "world" (instance $world)) (with "guest" (instance $user)) (with "allocator" (instance $kernel))))`)
	}
	w.line(`(core instance $bindings (instantiate $extism (with "world" (instance $world)) (with "guest" (instance $user)) (with "kernel" (instance $kernel))))`)
	w.fill(imports)
	w.exportInterfaces()
	w.line(")")
	sections, err := sectionsOf(w.b.String(), core)
	if err != nil {
		return nil, err
	}
	return wasmbin.WriteSections(wasmbin.ComponentHeader, append(sections, wasmbin.CustomSection("producers", extismProducers()))), nil
}

// extismProducers says in the component's own section what it was, which is a claim like any other.
var extismProducers = sync.OnceValue(func() []byte {
	var w wasmbin.Writer
	w.Number(1)
	w.Text("sdk")
	w.Number(1)
	w.Text("Extism plug-in")
	w.Text("")
	return w
})

// indirects lists what the module imports: from the kernel, the adapter, and that of preview 1.
func (p *plugin) indirects(a *adapter) []indirect {
	var list []indirect
	for _, name := range p.used {
		f := extismFuncs()[name]
		instance := "$bindings"
		if f.part == kernelText {
			instance = "$kernel"
		}
		list = append(list, indirect{coreImport{extismHost + "#" + name, types(f.params), types(f.results)}, fmt.Sprintf("(func %s %q)", instance, name)})
	}
	return append(list, a.indirects()...)
}

// adapterText is the core module that makes tools of the plug-in's exports, and its imports of capabilities.
func (p *plugin) adapterText(texts *extismTexts, offered map[string]coreImport) string {
	var b, run, initialize strings.Builder
	b.WriteString("(module $extism\n")
	for _, part := range p.parts {
		for _, id := range slices.Sorted(maps.Keys(extismImports()[part])) {
			c := offered[extismImports()[part][id]]
			fmt.Fprintf(&b, "  (import \"world\" %q (func %s%s))\n", c.name, id, signature(c.params, c.results))
		}
	}
	fmt.Fprintf(&b, `  (import "guest" "memory" (memory 0))
  (import "guest" %q (global $visible (mut i32)))
  (import "kernel" "reserve" (func $reserve (param i64)))
  (import "kernel" "block" (func $block (param i32) (result i32)))
  (import "kernel" "free" (func $free (param i64)))
  (import "kernel" "length" (func $length (param i64) (result i64)))
  (import "kernel" "input_set" (func $input_set (param i64 i64)))
  (import "kernel" "error_get" (func $error_get (result i64)))
  (import "kernel" "output_offset" (func $output_offset (result i64)))
  (import "kernel" "output_length" (func $output_length (result i64)))
`, visiblePages)
	for n, name := range p.tools {
		f, _ := p.module.function(name)
		result, zero := "(result i32)", ""
		if f.results == "" {
			result, zero = "", "(i32.const 0)"
		}
		fmt.Fprintf(&b, "  (import \"guest\" %q (func $tool%d %s))\n", name, n, result)
		fmt.Fprintf(&run, "    (if (i32.eq (local.get $n) (i32.const %d)) (then (return (call $tool%[1]d) %s)))\n", n, zero)
	}
	for n, name := range p.inits {
		params, args := "", ""
		if name == "hs_init" {
			params, args = "(param i32 i32)", " (i32.const 0) (i32.const 0)"
		}
		fmt.Fprintf(&b, "  (import \"guest\" %q (func $init%d %s))\n", name, n, params)
		fmt.Fprintf(&initialize, " (call $init%d%s)", n, args)
	}
	fmt.Fprintf(&b, "  (data $texts %s)\n", watBytes(texts.bytes))
	fmt.Fprintf(&b, "  (func $initialize%s)\n  (func $run (param $n i32) (result i32)\n%s    (unreachable))\n", initialize.String(), run.String())
	if !slices.Contains(p.parts, failText) {
		b.WriteString("  (func $malformed (unreachable))\n")
	}
	for _, part := range append([]string{toolsText}, p.parts...) {
		b.WriteString(texts.fill(part))
	}
	b.WriteString(")\n")
	return b.String()
}

func watBytes(b []byte) string {
	var s strings.Builder
	s.WriteByte('"')
	for _, c := range b {
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			s.WriteByte(c)
		} else {
			fmt.Fprintf(&s, "\\%02x", c)
		}
	}
	s.WriteByte('"')
	return s.String()
}

// Where the kernel's region has the area for results and the texts: see extism/tools.wat.
const (
	extismResult = 64
	extismTexts0 = 512
)

// extismTexts are the adapter's texts and tables, whose positions replace words of the adapter's text.
type extismTexts struct {
	bytes []byte
	words map[string]int
}

func (t *extismTexts) add(text string) int {
	t.bytes = append(t.bytes, text...)
	return len(t.bytes) - len(text)
}

// appendText adds a text, and its position and length to a table.
func (t *extismTexts) appendText(table []byte, text string) []byte {
	table = binary.LittleEndian.AppendUint32(table, uint32(t.add(text)))
	return binary.LittleEndian.AppendUint32(table, uint32(len(text)))
}

var extismWord = lazyregexp.New(`\b[A-Z][A-Z0-9_]+\b`)

// fill writes the positions into a text.
func (t *extismTexts) fill(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		code, comment, _ := strings.Cut(line, ";;")
		code = extismWord.ReplaceAllStringFunc(code, func(word string) string {
			if n, ok := t.words[word]; ok {
				return strconv.Itoa(n)
			}
			return word
		})
		if comment != "" {
			code += ";;" + comment
		}
		lines[i] = code
	}
	return strings.Join(lines, "")
}

// The failures that a plug-in cannot catch: Extism's functions have no way to say them.
const (
	extismNotJSON = "http_request: the request is not a JSON object of texts"
	extismNoBlock = "no block of memory begins at this offset, or it is empty"
	extismNotUTF8 = "the name or request is not UTF-8"
	extismNoError = "the function of the plug-in returned an error code and set no error"
)

// extismCases are texts for the cases of the variant error of stile:capability/types. Those with a colon have one of their own.
var extismCases = []string{
	"denied", "the grant was revoked: ", "the grant has expired", "a limit was reached: ", "the request took too long", "the content is too large",
	"not found: ", "it already exists: ", "conflict: ", "invalid: ", "unavailable: ", "interrupted: ",
}

// inputOfText is the schema of a tool that takes text or bytes.
const inputOfText = `{"type":"object","properties":{"input":{"type":"string","description":"the text that the plug-in gets"},"base64":{"type":"string","pattern":"^[A-Za-z0-9+/]*={0,2}$","description":"bytes instead of a text, as base64"}},"maxProperties":1,"additionalProperties":false}`

// texts makes the texts of a plug-in's adapter.
func (p *plugin) texts() *extismTexts {
	t := &extismTexts{words: map[string]int{"RESULT": extismResult, "TEXTS": extismTexts0, "TOOLS": len(p.tools)}}
	texts := map[string]string{
		"NAME_KV": ExtismKV, "NAME_NETWORK": ExtismHTTP, "NAME_CONSOLE": ExtismConsole, "CONFIG": "config/", "VAR": "var/", "ENCODED": "base64:",
		"KEY_BASE64": "base64", "BYTES": `{"base64":"`, "BASE64": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "NULL": "null",
		"ERROR_NAME": "Error", "GET": "GET", "KEY_URL": "url", "KEY_METHOD": "method", "KEY_HEADERS": "headers",
		"NOT_JSON": extismNotJSON, "NO_BLOCK": extismNoBlock, "NOT_UTF8": extismNotUTF8, "NO_ERROR": extismNoError,
	}
	for _, word := range slices.Sorted(maps.Keys(texts)) {
		t.words[word] = t.add(texts[word])
		t.words[word+"_LENGTH"] = len(texts[word])
	}
	var cases []byte
	for i, text := range extismCases {
		if strings.HasSuffix(text, ": ") {
			t.words["CASES_WITH_TEXT"] |= 1 << i
		}
		cases = t.appendText(cases, text)
	}
	var definitions, modes []byte
	for _, d := range p.definitions() {
		definitions = t.appendText(definitions, d.Name)
		definitions = t.appendText(definitions, d.Description)
		definitions = t.appendText(definitions, d.InputSchema)
		var output, mode byte
		if p.described[d.Name].Input != nil {
			mode |= 1
		}
		if d.OutputSchema != nil {
			output = 1
			mode |= 2
		}
		definitions = append(definitions, output, 0, 0, 0)
		definitions = t.appendText(definitions, *cmp.Or(d.OutputSchema, new("")))
		for _, hint := range []bool{d.Annotations.ReadOnly, d.Annotations.Destructive, d.Annotations.Idempotent, d.Annotations.OpenWorld} {
			definitions = append(definitions, 0)
			if hint {
				definitions[len(definitions)-1] = 1
			}
		}
		modes = append(modes, mode)
	}
	t.words["MODES"] = t.add(string(modes))
	for len(t.bytes)%4 != 0 {
		t.add("\x00")
	}
	t.words["CASES"] = t.add(string(cases))
	t.words["DEFINITIONS"] = t.add(string(definitions))
	t.words["TEXTS_LENGTH"] = len(t.bytes)
	t.words["FIRST"] = (extismTexts0 + len(t.bytes) + 15) &^ 15
	return t
}

// definitions returns the tools of the plug-in, in the order of their numbers.
func (p *plugin) definitions() []abi.Definition {
	var writes, world bool
	for _, name := range p.used {
		writes = writes || name == "var_set"
		world = world || name == "http_request"
	}
	definitions := make([]abi.Definition, len(p.tools))
	for i, name := range p.tools {
		definitions[i] = abi.Definition{
			Name: name, Description: "Function " + name + " of an Extism plug-in, which takes and returns a text", InputSchema: inputOfText,
			Annotations: abi.Annotations{ReadOnly: !writes && !world, Destructive: writes || world, OpenWorld: world},
		}
		t := p.described[name]
		d := &definitions[i]
		d.Description = cmp.Or(t.Description, d.Description)
		if t.Input != nil {
			d.InputSchema = string(t.Input)
		}
		if t.Output != nil {
			d.OutputSchema = new(string(t.Output))
		}
		if t.Annotations != nil {
			d.Annotations = *t.Annotations
		}
	}
	return definitions
}
