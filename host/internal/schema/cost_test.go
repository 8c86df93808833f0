package schema

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stilehost/stile/internal/jsonform"
)

// A value in which everything is wrong causes errors that take no more memory than the value. Without a bound, each error would hold its
// place, which is as long as the value is deep.
func TestManySchemaErrors(t *testing.T) {
	deep := strings.Repeat(`{"type": "array", "items": `, 25) + `{"type": "TYPE"}` + strings.Repeat("}", 25)
	names := `"` + strings.Join(strings.Fields(strings.Repeat("x ", 99)), `", "`) + `"`
	for i := range 99 {
		names = strings.Replace(names, `"x"`, `"n`+string(rune('a'+i/26))+string(rune('a'+i%26))+`"`, 1)
	}
	for name, c := range map[string]struct{ schema, right, wrong, value string }{
		"deep": {deep, "number", "string", strings.Repeat("[", 25) + "0" + strings.Repeat(",0", 200_000) + strings.Repeat("]", 25)},
		"flat": {`{"type": "array", "items": {"type": "TYPE"}}`, "number", "string", "[0" + strings.Repeat(",0", 200_000) + "]"},
		"required": {
			`{"type": "array", "items": {"type": "object", "required": [TYPE]}}`, "", names, "[{}" + strings.Repeat(",{}", 60_000) + "]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			validate := func(as string) (uint64, error) {
				s, err := NewCompiler().Compile(strings.ReplaceAll(c.schema, "TYPE", as))
				if err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err = s.validate(t.Context(), NewRoom(), []byte(c.value))
				runtime.ReadMemStats(&after)
				return after.TotalAlloc - before.TotalAlloc, err
			}
			right, err := validate(c.right)
			if err != nil {
				t.Fatalf("what is right: %v", err)
			}
			wrong, err := validate(c.wrong)
			if !errors.As(err, new(*InvalidError)) || !strings.Contains(err.Error(), "try a smaller value") {
				t.Errorf("got %.300v", err)
			}
			if wrong > 2*right {
				t.Errorf("%d bytes, where a value that is right takes %d", wrong, right)
			}
		})
	}
}

// TestDecodedSize decodes JSON that takes much more memory than its text, and compares it with what the host counts for it.
func TestDecodedSize(t *testing.T) {
	list := func(item string) string { return "[" + item + strings.Repeat(","+item, 300_000/(len(item)+1)) + "]" }
	fields := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%x":0`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	nested := func(open, shut string) string { return strings.Repeat(open, 5000) + "0" + strings.Repeat(shut, 5000) }
	for name, text := range map[string]string{
		"objects of one": list(`{"":0}`), "empty objects": list(`{}`), "empty lists": list(`[]`), "lists of one": list(`[0]`), "lists of two": list(`[0,0]`),
		"numbers": list("0"), "long numbers": list("123456789012345678901234567890"), "empty texts": list(`""`), "texts": list(`"ab\\\"{[,"`), "nulls": list("null"),
		"lists in objects": list(`{"a":[]}`), "objects in objects": list(`{"":{"":{}}}`), "nested objects": list(nested(`{"":`, "}")), "nested lists": list(nested("[", "]")),
		"many fields": fields(40_000), "objects of eight": list(fields(8)), "objects of nine": list(fields(9)), "objects of 900": list(fields(900)),
		"a text": `"` + strings.Repeat(`\u0800`, 50_000) + `"`, "not UTF-8": `"` + strings.Repeat("\xff", 300_000) + `"`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := jsonschema.UnmarshalJSON(strings.NewReader(text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		takes, counted := int64(after.TotalAlloc-before.TotalAlloc), jsonform.DecodedSize([]byte(text))
		t.Logf("%s: %d bytes take %d, counted as %d (%.2f)", name, len(text), takes, counted, float64(takes)/float64(counted))
		if takes > counted || counted > 8*takes {
			t.Errorf("%s: %d bytes take %d, and count for %d", name, len(text), takes, counted)
		}
	}
}

// TestValidationsWaitForMemory checks a large value while others take what there is: it is not decoded until there is room. A small one does
// not wait.
func TestValidationsWaitForMemory(t *testing.T) {
	s, err := NewCompiler().Compile(`{"type": "array", "minItems": 1}`)
	if err != nil {
		t.Fatal(err)
	}
	large := []byte("[{}" + strings.Repeat(`,{"":0}`, 100_000) + "]")
	room := NewRoom()
	if err := room.Decoded.TakeFor(t.Context(), "", 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(t.Context(), room, large); err != nil {
		t.Errorf("with room for it: %v", err)
	}
	if err := room.Decoded.TakeFor(t.Context(), "", MaxDecoded-1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = s.Validate(ctx, room, large)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, context.Canceled) || took > 1<<20 {
		t.Errorf("without room: %v, and it took %d bytes", err, took)
	}
	if err := s.Validate(t.Context(), room, []byte("[{}]")); err != nil {
		t.Errorf("a small one: %v", err)
	}
	room.Decoded.GiveBack(MaxDecoded)
	if err := s.Validate(t.Context(), room, []byte("[{}"+strings.Repeat(`,{"":0}`, 200_000)+"]")); err != nil {
		t.Errorf("one that takes all: %v", err)
	}
	if !room.Decoded.TryTake("", MaxDecoded) {
		t.Error("something was not given back")
	}
}

// TestValidationsTakeTurns validates while another user's validations have all processors, and many wait.
func TestValidationsTakeTurns(t *testing.T) {
	s, err := NewCompiler().Compile(`{"type": "array", "minItems": 1}`)
	if err != nil {
		t.Fatal(err)
	}
	room := NewRoom()
	all := int64(runtime.GOMAXPROCS(0))
	if err := room.Processors.TakeFor(t.Context(), "greedy", all); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, input := range map[string]string{"right": "[0]", "wrong": "[]", "not JSON": "["} {
		if err := s.validate(ctx, room, []byte(input)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, without a processor: %v", name, err)
		}
	}
	const many = 40
	var users sync.WaitGroup
	var before atomic.Int64 // turns that the user has had before the other one
	take := func(user string, do func()) {
		users.Go(func() {
			if err := room.For(user, nil).compute(t.Context(), func() error { do(); return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	for range many {
		take("greedy", func() { before.Add(1) })
	}
	for room.Processors.Waiting() < many {
		runtime.Gosched()
	}
	take("other", func() {
		if n := before.Load(); n > 1 {
			t.Errorf("a user waited for %d turns of another", n)
		}
	})
	for room.Processors.Waiting() < many+1 {
		runtime.Gosched()
	}
	room.Processors.GiveBack(1) // one at a time
	users.Wait()
	room.Processors.GiveBack(all - 1)
	if err := s.validate(t.Context(), room, []byte("[0]")); err != nil {
		t.Error(err)
	}
	if !room.Processors.TryTake("", all) {
		t.Error("something was not given back")
	}
}

// TestPatternsTakeLittle compiles schemas with patterns that take long to parse, alone and together.
func TestPatternsTakeLittle(t *testing.T) {
	fold := `(?i)` + strings.Repeat(`[A-\\x{1e942}]`, 9)
	for name, schemas := range map[string][]string{
		"a pattern":     {`{"pattern": "` + strings.Repeat(`\\pL`, 10_000) + `"}`},
		"ignoring case": {`{"pattern": "(?i)[` + strings.Repeat(`A-\\x{1e942}`, 2500) + `]"}`},
		"patterns":      {`{"pattern": "` + fold + `", "not": {"pattern": "x` + fold + `"}}`},
		"schemas":       {`{"pattern": "` + fold + `"}`, `{"patternProperties": {"x` + fold + `": false}}`},
	} {
		c := NewCompiler()
		var err error
		for i, s := range schemas {
			if err != nil {
				t.Errorf("%s: schema %d: %v", name, i, err)
			}
			_, err = c.Compile(s)
		}
		if err == nil || !strings.Contains(err.Error(), "takes long to parse") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
