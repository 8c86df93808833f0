package host_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/host/internal/schema"
)

// literal spells text for a data segment.
func literal(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "\\%02x", c)
	}
	return b.String()
}

// describes is a guest whose tool has an input schema.
func describes(schema string) guest {
	return guest{
		more:     fmt.Sprintf(`(data (i32.const 8192) "%s")`, literal(schema)),
		describe: fmt.Sprintf(`(drop (memory.grow (i32.const 8))) (i32.store (i32.const 1128) (i32.const 8192)) (i32.store (i32.const 1132) (i32.const %d)) (i32.const 1104)`, len(schema)),
	}
}

// doubling is a schema of a few kilobytes that applies to one value 2 to the n times.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"type":"object"}}}`, n)
	return b.String()
}

// anchored is a schema with the anchor n.
func anchored(body string) string { return `{"$dynamicAnchor":"n",` + body + `}` }

// levels is the body of a schema that has two references at each level of nesting.
func levels(keyword, to string) string {
	return fmt.Sprintf(`"properties":{"a":{"allOf":[{%[1]q:%[2]q},{%[1]q:%[2]q}]}}`, keyword, to)
}

// recursive is a schema in the draft that has $recursiveRef.
func recursive(body string) string {
	return `{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,` + body + `}`
}

// inScope is a resource that leads to another one, which refers to the anchor n. Both have that anchor.
func inScope(outside, inside string) string {
	return fmt.Sprintf(`{"$id":"https://a.example/","$ref":"b","$defs":{"n":%s,"b":{"$id":"b","$dynamicRef":"#n","$defs":{"n":%s}}}}`, anchored(outside), anchored(inside))
}

// manyAnchors is a schema with n anchors of one name and n references to it.
func manyAnchors(n int) string {
	var anchors, refs []string
	for i := range n {
		anchors = append(anchors, fmt.Sprintf(`"a%[1]d":{"$id":"a%[1]d","$dynamicAnchor":"n"}`, i))
		refs = append(refs, fmt.Sprintf(`"p%d":{"$dynamicRef":"a%d#n"}`, i, i))
	}
	return `{"$id":"https://a.example/","$defs":{` + strings.Join(anchors, ",") + `},"properties":{` + strings.Join(refs, ",") + `}}`
}

func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
}

// TestHostileSchemas checks inputs against schemas that would cost the host more than the guest may use.
func TestHostileSchemas(t *testing.T) {
	h := newHost(t, host.Options{})
	const (
		huge  = "a number of more than 400 characters or with an exponent beyond 400"
		steps = "takes too many steps"

		circle = "leads back to itself for the same value"
	)
	var manyPatterns []string
	for i := range 100 {
		manyPatterns = append(manyPatterns, fmt.Sprintf(`{"pattern":"(a|%d){500}"}`, i))
	}
	for _, c := range []struct{ name, schema, input, want string }{
		{"a number too large to compare", `{"properties":{"n":{"minimum":1}}}`, `{"n":1e99999999}`, "/n: " + huge},
		{"a number too small to compare", `{"properties":{"a~/":{"type":"integer"}}}`, `{"a~/":[1E-401]}`, "/a~0~1/0: " + huge},
		{"an exponent without end", `{}`, `1e` + strings.Repeat("9", 100), huge},
		{"a number of many digits", `{"type":"integer"}`, strings.Repeat("9", 401), huge},
		{"the largest numbers", `{"maximum":1e400}`, `-9e+400`, ""},
		{"a minimum too large", `{"minimum":1e99999999}`, `1`, "input schema: /minimum: " + huge},
		{"a constant too large", `{"enum":[1,1e999999]}`, `1`, "input schema: /enum/1: " + huge},
		{"a multiple of nothing", `{"multipleOf":0}`, `1`, "input schema: /multipleOf: got 0, want more than 0"},
		{"doubling references", doubling(40), `{}`, "more than 10000 subschemas for one value"},
		{"a few doubling references", doubling(10), `{}`, ""},
		{"a circle", `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`, `{}`, circle},
		{"a circle of two", `{"$ref":"#/$defs/a","$defs":{"a":{"not":{"$ref":"#/$defs/b"}},"b":{"if":{"$ref":"#/$defs/a"}}}}`, `{}`, circle},
		{"a circle of a dynamic reference", `{"$dynamicRef":"#"}`, `{}`, circle},
		{"a circle through an anchor", anchored(`"anyOf":[{"$dynamicRef":"#n"}]`), `{}`, circle},
		{"a circle through another resource", inScope(`"$ref":"b"`, `"type":"object"`), `{}`, circle},
		{"a circle of a recursive reference", recursive(`"not":{"$recursiveRef":"#"}`), `{}`, circle},
		{"doubling dynamic references", strings.ReplaceAll(doubling(40), `"$ref":"#/`, `"$dynamicRef":"#/`), `{}`, "more than 10000 subschemas for one value"},
		{"doubling by an anchor at each level", anchored(levels("$dynamicRef", "#n")), nested(40), steps},
		{"doubling by a recursive reference at each level", recursive(levels("$recursiveRef", "#")), nested(40), steps},
		{"doubling outside, where the reference leads", inScope(levels("$ref", "#"), `"type":"object"`), nested(40), steps},
		{"doubling inside, where it does not", inScope(`"type":"object"`, levels("$ref", "#")), nested(40), ""},
		{"doubling where nothing else leads", `{"$id":"https://a.example/","$ref":"b#/$defs/y","$defs":{"b":{"$id":"b","$defs":{"x":` + anchored(levels("$ref", "#n")) + `,"y":{"$ref":"c"}}},"c":{"$id":"c","$dynamicRef":"#n","$defs":{"z":{"$dynamicAnchor":"n"}}}}}`, nested(40), steps},
		{"a tree of two anchors", inScope(`"properties":{"a":{"$dynamicRef":"#n"}},"required":["b"]`, `"properties":{"a":{"$dynamicRef":"#n"}}`), nested(60), `/a/a: missing property 'b'`},
		{"a schema of schemas", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, strings.Repeat(`{"not":`, 20) + `{"type":"strng"}` + strings.Repeat("}", 20), "/not/not/type: "},
		{"many anchors of one name", manyAnchors(1000), `{"p1":{}}`, ""},
		{"an anchor in a place that is hard to spell", `{"$dynamicAnchor":"n","properties":{"a%25/~1#é\" \u0000":{"$dynamicRef":"#n"}}}`, `{}`, ""},
		{"many errors behind an anchor", anchored(`"type":"array","items":{"$dynamicRef":"#n"}`), "[0" + strings.Repeat(",0", 100_000) + "]", "try a smaller value"},
		{"a recursive schema", `{"properties":{"a":{"anyOf":[{"type":"number"},{"$ref":"#"}]}}}`, nested(200), ""},
		{"doubling at each level", `{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, nested(40), steps},
		{"doubling in turns", `{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"a":{"$ref":"#/$defs/b"}},"additionalProperties":false,"anyOf":[{"properties":{"a":{"$ref":"#/$defs/b"}}}]},"b":{"oneOf":[{"$ref":"#/$defs/a"}]}}}`, nested(40), steps},
		{"deep input", `{"properties":{"a":{"$ref":"#"}},"minProperties":2}`, nested(9000), steps},
		{"a long enumeration of many", `{"items":{"enum":[` + strings.Repeat("1,", 10_000) + `2]}}`, "[" + strings.Repeat("3,", 10_000) + "3]", steps},
		{"unique items", `{"uniqueItems":true}`, "[" + strings.Repeat(`"a",`, 100_000) + `"a"]`, steps},
		{"a list of numbers of the largest size", `{"items":{"type":"number"}}`, "[" + strings.Repeat("1,", 499_999) + "1]", ""},
		{"a pattern on a long string", `{"pattern":"(?:a?){90}b{90}"}`, `"` + strings.Repeat("a", 1_000_000) + `"`, steps},
		{"a pattern of a million instructions", `{"pattern":"(?:` + strings.Repeat("ab", 1000) + `){1000}"}`, `{}`, "is not valid"},
		{"many large patterns", `{"allOf":[` + strings.Join(manyPatterns, ",") + `]}`, `{}`, "is not valid"},
		{"long patterns", `{"pattern":"` + strings.Repeat("[a-z]", 10_000) + `"}`, `{}`, "is not valid"},
		{"a pattern in the input", `{"$schema":"http://json-schema.org/draft-07/schema#","format":"regex"}`, `"("`, ""},
		{"a format under 2020-12", `{"format":"email"}`, `"a"`, `"a" does not have the format "email": missing @`},
		{"a format many times", `{"allOf":[` + strings.Repeat(`{"format":"duration"},`, 2000) + `{}]}`, `"` + strings.Repeat("T", 60_000) + `"`, steps},
		{"a format on a long string", `{"format":"ipv4"}`, `"` + strings.Repeat(".", 1_000_000) + `"`, "more than 64 KiB"},
		{"too many subschemas", `{"allOf":[` + strings.Repeat("{},", 20_000) + `{}]}`, `{}`, "too many subschemas"},
		{"long pointers", `{"properties":{"` + strings.Repeat("k", 100_000) + `":{"allOf":[` + strings.Repeat("{},", 1000) + `{}]}}}`, `{}`, "too many subschemas"},
		{"a deep schema", strings.Repeat(`{"not":`, 1000) + "true" + strings.Repeat("}", 1000), `{}`, "nested too deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := describes(c.schema).load(t, h).Call(t.Context(), "t", []byte(c.input), nil)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.300v, want %q", err, c.want)
			}
			if !errors.As(err, new(*host.InputError)) && !errors.As(err, new(*host.DefinitionError)) {
				t.Errorf("got a %T", err)
			}
		})
	}
}

// TestSchemaErrors has invalid schemas. Their errors say which tool and place is wrong, and how to fix it.
func TestSchemaErrors(t *testing.T) {
	h := newHost(t, host.Options{})
	const types = `want one of "array", "boolean", "integer", "null", "number", "object", "string"`
	for _, c := range []struct{ name, schema, want string }{
		{"a type that is none", `{"properties":{"a":{"type":"strng"}}}`, `/properties/a/type: got "strng", ` + types},
		{"one of types that is none", `{"type":["string","nul"]}`, `/type/1: got "nul", ` + types},
		{"of an older draft", `{"$schema":"http://json-schema.org/draft-07/schema#","items":{"type":"strng"}}`, `/items/type: got "strng", ` + types},
		{"a lookahead", `{"properties":{"a":{"pattern":"(?=x)y"}}}`, `/properties/a/pattern: the pattern "(?=x)y" is not valid: invalid or unsupported Perl syntax: "(?="; patterns are RE2, which has no lookahead, lookbehind or backreference`},
		{"a lookahead in a name", `{"patternProperties":{"(?!x)":{}}}`, `/patternProperties/(?!x): the pattern "(?!x)" is not valid: invalid or unsupported Perl syntax: "(?!"; patterns are RE2, which has no lookahead, lookbehind or backreference`},
		{"a type in the place of a schema", `{"properties":{"b":"string","a":1}}`, `/properties/a: got number, want boolean or object: a schema, as in {"type": "string"}; /properties/b: got string, want boolean or object: a schema, as in {"type": "string"}`},
		{"required in a property", `{"properties":{"a":{"required":true}}}`, `/properties/a/required: got boolean, want array: the names of properties, as in {"properties": {"a": {}}, "required": ["a"]}`},
		{"no schema", `[]`, `the whole: got array, want boolean or object: a schema, as in {"type": "string"}`},
		{"a definition that is missing", `{"$ref":"#/$defs/a"}`, `$ref "#/$defs/a" has no target in the schema`},
		{"an anchor that is missing", `{"$ref":"#a"}`, `$ref "#a" has no target: no part of the schema has that $anchor`},
		{"another schema", `{"$ref":"https://example.com/a"}`, `"https://example.com/a" cannot be fetched: put the target of a $ref under "$defs" and refer to "#/$defs/NAME", and use only a $schema of json-schema.org`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := describes(c.schema).load(t, h).Tools(t.Context())
			if want := `tool "t": input schema: ` + c.want; !errors.As(err, new(*host.DefinitionError)) || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// TestSchemasOfAllTools approves tools whose schemas are too large only in total.
func TestSchemasOfAllTools(t *testing.T) {
	c := guest{}.load(t, newHost(t, host.Options{}))
	var tools []abi.Definition
	for i := range 6 {
		schema := fmt.Sprintf(`{"description":"%d%s"}`, i, strings.Repeat("x", 200<<10))
		tools = append(tools, abi.Definition{Name: fmt.Sprintf("t%d", i), InputSchema: schema, OutputSchema: &schema})
	}
	_, err := c.Do(t.Context(), host.Request{Tool: "t0", Approved: tools})
	if !errors.As(err, new(*host.DefinitionError)) || !strings.Contains(err.Error(), "more than 1 MiB") {
		t.Errorf("got %v", err)
	}
}

// TestPromises has a tool return results that match its output schema and results that do not.
func TestPromises(t *testing.T) {
	h := newHost(t, host.Options{})
	for _, test := range []struct{ name, promise, output, want string }{
		{"kept", `{"properties":{"mean":{"type":"number"}}}`, `{"mean":1}`, ""},
		{"broken", `{"properties":{"mean":{"type":"number"}}}`, `{"mean":null}`, "its output schema: /mean: got null, want number"},
		{"broken as a whole", `{"type":"object"}`, `[]`, "its output schema: result: got array, want object"},
		{"broken in form", `{"items":{"format":"uuid"}}`, `["x"]`, `its output schema: /0: "x" does not have the format "uuid": must have 5 elements`},
		{"too much to check", `{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, nested(40), "too many steps"},
		{"characters that are not seen", `{"additionalProperties":{"type":"number"}}`, "{\"\u202e\":\"\"}", `/\u202e: got string`},
		{"many", `{"items":{"type":"number"}}`, "[" + strings.Repeat(`"",`, 1000) + "1]", "/19: got string, want number"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := guest{data: literal(test.output), call: fmt.Sprintf(`(call $ok (i32.const 2048) (i32.const %d))`, len(test.output))}.load(t, h)
			tools := []abi.Definition{{Name: "t", InputSchema: `{}`, OutputSchema: &test.promise}}
			r, err := c.Do(t.Context(), host.Request{Tool: "t", Approved: tools})
			if test.want == "" {
				if err != nil || string(r.Output) != test.output {
					t.Errorf("got %s, %v", r.Output, err)
				}
				return
			}
			var failed *host.GuestError
			if !errors.As(err, &failed) || failed.Failure.Name != "InvalidOutput" || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 20<<10 {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if r.Output != nil {
				t.Errorf("the result is given all the same: %s", r.Output)
			}
		})
	}
}

// TestChecksCount makes calls with an input that takes about half a second to check: within less time it is not checked, and the guest
// has the rest.
func TestChecksCount(t *testing.T) {
	h := newHost(t, host.Options{})
	g := describes(`{"items":{"multipleOf":1e-300}}`)
	g.call = `(loop $l (br $l)) unreachable`
	component := g.load(t, h)
	input := []byte("[" + strings.Repeat("1e300,", 170_000) + "0]")
	for _, c := range []struct {
		cpu    time.Duration
		begins bool
	}{{100 * time.Millisecond, false}, {700 * time.Millisecond, true}} {
		begins := false
		r, err := component.Do(t.Context(), host.Request{Tool: "t", Input: input, Limits: host.Limits{CPU: c.cpu}, Begin: func(context.Context) error {
			begins = true
			return nil
		}})
		var limit *host.LimitError
		if !errors.As(err, &limit) || limit.Limit != "cpu" || begins != c.begins {
			t.Errorf("within %v: %v, and the guest begins: %t", c.cpu, err, begins)
		}
		if r.Usage.CPU > c.cpu*2/3 {
			t.Errorf("within %v: the guest has %v", c.cpu, r.Usage.CPU)
		}
	}
}

// TestDescribeWithinLimits loads a component whose describe never returns.
func TestDescribeWithinLimits(t *testing.T) {
	c := guest{describe: `(loop $l (br $l)) unreachable`}.load(t, newHost(t, host.Options{}))
	_, err := c.Do(t.Context(), host.Request{Tool: "t", Limits: host.Limits{CPU: 50 * time.Millisecond}})
	var limit *host.LimitError
	if !errors.As(err, &limit) || limit.Limit != "cpu" || limit.Value != "50ms" {
		t.Errorf("got %v", err)
	}
}

// TestWallCountsTheCheckOfInput calls a tool while others keep the room for checks of input.
func TestWallCountsTheCheckOfInput(t *testing.T) {
	h := newHost(t, host.Options{})
	c := guest{}.load(t, h)
	defer h.Validating(t, "").GiveBack(schema.MaxValidating)
	slow := []abi.Definition{{Name: "t", InputSchema: `{"maxProperties": 1}`}} // checks of common keywords need no room
	_, err := c.Do(t.Context(), host.Request{Tool: "t", Approved: slow, Limits: host.Limits{Wall: 50 * time.Millisecond}})
	var limit *host.LimitError
	if !errors.As(err, &limit) || limit.Limit != "wall" || limit.Value != "50ms" {
		t.Errorf("got %v", err)
	}
}

// TestUsersShareValidations checks an input while a user who has all room waits for more, and room becomes free.
func TestUsersShareValidations(t *testing.T) {
	h := newHost(t, host.Options{})
	c := guest{}.load(t, h)
	slow := []abi.Definition{{Name: "t", InputSchema: `{"maxProperties": 1, "properties": {"a": {"items": {"maxProperties": 1}}}}`}}
	const little = 1000
	large := []byte(`{"a":[{}` + strings.Repeat(`,{}`, little) + `]}`) // it takes more steps
	room := h.Validating(t, "greedy")
	var greedy sync.WaitGroup
	greedy.Go(func() {
		if _, err := c.Do(t.Context(), host.Request{Tool: "t", Approved: slow, User: "greedy", Input: large}); err != nil {
			t.Error(err)
		}
	})
	for room.Waiting() == 0 {
		runtime.Gosched()
	}
	room.GiveBack(little)
	if _, err := c.Do(t.Context(), host.Request{Tool: "t", Approved: slow, User: "other"}); err != nil {
		t.Error(err)
	}
	if room.Waiting() != 1 {
		t.Error("the large input did not wait")
	}
	room.GiveBack(schema.MaxValidating - little)
	greedy.Wait()
}

// TestWallCountsDescribe calls a tool that waits for ever, of a component that is slow to say what tools it has.
func TestWallCountsDescribe(t *testing.T) {
	slow := waiter
	slow.more = `(global $n (mut i64) (i64.const 800000000))`
	slow.describe = `(loop $l (global.set $n (i64.sub (global.get $n) (i64.const 1))) (br_if $l (i64.ne (global.get $n) (i64.const 0)))) (i32.const 1104)`
	const wall = time.Second
	c := slow.load(t, newHost(t, host.Options{}))
	for try := 1; ; try++ { // on a busy machine all takes longer; were describe not counted, every try would take longer
		began := time.Now()
		_, err := c.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &box{}}, Limits: host.Limits{Wall: wall, CPU: time.Minute}})
		took := time.Since(began)
		var limit *host.LimitError
		if !errors.As(err, &limit) || limit.Limit != "wall" {
			t.Fatalf("got %v after %v", err, took)
		}
		if took <= wall+wall/4 {
			return
		}
		if try == 20 {
			t.Fatalf("it took %v", took)
		}
	}
}

// TestEmptyInput calls a tool with inputs without a byte.
func TestEmptyInput(t *testing.T) {
	c := guest{}.load(t, newHost(t, host.Options{}))
	for _, input := range [][]byte{nil, {}} {
		if out, err := c.Call(t.Context(), "t", input, nil); err != nil || string(out) != `"ok"` {
			t.Errorf("%#v: got %s, %v", input, out, err)
		}
	}
}

// TestCompareWithApproved changes what was approved in one place at a time.
func TestCompareWithApproved(t *testing.T) {
	c := guest{}.load(t, newHost(t, host.Options{}))
	now, err := c.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	output := `{}`
	for _, test := range []struct {
		name   string
		change func(d *abi.Definition)
		want   string
	}{
		{"nothing", func(*abi.Definition) {}, ""},
		{"a description", func(d *abi.Definition) { d.Description += "\xff" }, "differs from its approved description"},
		{"a schema", func(d *abi.Definition) { d.InputSchema = `{"type":"object"}` }, "differs from its approved description"},
		{"a promise", func(d *abi.Definition) { d.OutputSchema = &output }, "differs from its approved description"},
		{"a hint", func(d *abi.Definition) { d.Annotations.ReadOnly = true }, "differs from its approved description"},
		{"a name", func(d *abi.Definition) { d.Name = "other" }, "was approved, but the component no longer has it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			approved := now[0]
			test.change(&approved)
			err := c.CheckTools(t.Context(), []abi.Definition{approved})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if err := c.CheckTools(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "was not approved") {
		t.Errorf("got %v", err)
	}
}

// TestApprovedSetsTakeLittle checks that approved definitions of 2 MB cost a call no more than small ones, whether the caller passes the
// same slice or an equal one. It counts the host's allocations.
func TestApprovedSetsTakeLittle(t *testing.T) {
	c := guest{}.load(t, newHost(t, host.Options{}))
	schema := func() string { return `{"title":"` + strings.Repeat("x", 200<<10) + `"}` }
	output := schema()
	large := []abi.Definition{{Name: "t", InputSchema: schema(), OutputSchema: &output}}
	for i := range 8 {
		large = append(large, abi.Definition{Name: fmt.Sprintf("t%d", i), InputSchema: schema()})
	}
	allocated := func(passed func() []abi.Definition) uint64 {
		const calls = 20
		var before, after runtime.MemStats
		for n := range calls + 1 {
			if n == 1 { // the first call compiles
				runtime.ReadMemStats(&before)
			}
			if _, err := c.Do(t.Context(), host.Request{Tool: "t", Approved: passed()}); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / calls
	}
	small := allocated(func() []abi.Definition { return []abi.Definition{{Name: "t", InputSchema: `{}`}} })
	for name, passed := range map[string]func() []abi.Definition{
		"the same":     func() []abi.Definition { return large },
		"an equal one": func() []abi.Definition { return slices.Clone(large) },
		"equal outputs": func() []abi.Definition {
			d := slices.Clone(large)
			d[0].OutputSchema = new(*d[0].OutputSchema)
			return d
		},
	} {
		if got := allocated(passed); got > small+64<<10 {
			t.Errorf("%s: %d bytes allocated for each call, and %d with small definitions", name, got, small)
		}
	}
	output = `{"const":1}`
	if _, err := c.Do(t.Context(), host.Request{Tool: "t", Approved: large}); err == nil {
		t.Error("the output schema that was changed in place is not applied")
	}
}

// TestApprovedSetsAreKept passes approved definitions that change between calls. Each call uses its own.
func TestApprovedSetsAreKept(t *testing.T) {
	c := guest{}.load(t, newHost(t, host.Options{}))
	for round := range 2 {
		for i := range 20 {
			approved := []abi.Definition{{Name: "t", InputSchema: fmt.Sprintf(`{"const":%d}`, i)}}
			for _, input := range []int{i, i + 1} {
				_, err := c.Do(t.Context(), host.Request{Tool: "t", Input: fmt.Append(nil, input), Approved: approved})
				if (err == nil) != (input == i) {
					t.Errorf("round %d, approved %d, input %d: %v", round, i, input, err)
				}
			}
		}
	}
}
