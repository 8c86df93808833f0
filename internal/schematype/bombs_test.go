package schematype_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stilehost/stile/internal/schematype"
)

// TestTypesTakeLittle has schemas of 120 KiB whose references lead far, or to types that would nest a thousand deep.
func TestTypesTakeLittle(t *testing.T) {
	repeat := func(n int, part string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.NewReplacer("@", fmt.Sprint(i), "^", fmt.Sprint(i+1)).Replace(part))
		}
		return b.String()
	}
	deep := strings.Repeat("/properties/a", 28)
	steps := `{"$defs":{"S":{"$ref":"#` + deep + `/$defs/r0"}},"properties":{` + repeat(200, `"p@":{"properties":{`+`"q":{"$ref":"#/$defs/S"},`+
		`"r":{"$ref":"#/$defs/S"},"s":{"$ref":"#/$defs/S"},"t":{"$ref":"#/$defs/S"}}},`) + `"a":` + strings.Repeat(`{"properties":{"a":`, 27) +
		`{"$defs":{` + repeat(30, `"r@":{"$ref":"#`+deep+`/$defs/r^"},`) + `"r30":{}}` + strings.Repeat(`}}`, 27) + `}}`
	values := `{"enum":[` + repeat(23, `"`+strings.Repeat("x", 50)+`@",`) + `"z"]}`
	nested := `{"$defs":{` + repeat(1600, `"d@":{"allOf":[{"$ref":"#/$defs/e"},{"items":{"$ref":"#/$defs/d^"}}]},`) + `"d1600":{},"e":` + values + `},"$ref":"#/$defs/d0"}`
	same := `{"$defs":{"D":{"properties":{` + repeat(5000, `"x@":0,`) + `"z":0}}},"items":{"prefixItems":[],"anyOf":[` + repeat(20, `{"properties":{`+repeat(20, `"a@":{"$ref":"#/$defs/D"},`)+`"z":0}},`) + `true]}}`
	fields := `{` + repeat(20_000, `"x@":0,`) + `"items":{"$ref":"#"}}`
	for name, text := range map[string]string{"steps": steps, "nested": nested, "properties": same, "fields": fields} {
		s := schematype.Parse(text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, depth := range []int{1, 3, 5} {
			_, _ = s.Type(schematype.Detail{Depth: depth, Comment: 100, Optional: 1000})
			_, _ = s.Type(schematype.Detail{Depth: depth, Optional: 2, Line: true})
			_, _, _ = s.TypeWithin(schematype.Detail{Depth: depth, Comment: 100, Optional: 1000}, 2000)
		}
		for range 500 {
			if next, ok := s.Field("[]"); ok {
				s = next
			}
		}
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 150 {
			t.Errorf("%s, of %d KiB, took %d MiB", name, len(text)>>10, took)
		}
	}
}

// TestTypeWithin gives up types that are too long, and no others.
func TestTypeWithin(t *testing.T) {
	s := schematype.Parse(`{"properties":{"a":{"type":"string"}},"required":["a"]}`)
	const want = "{\n  a: string;\n}"
	for most, fits := range map[int]bool{len(want): true, len(want) - 1: false, 0: false} {
		if text, less, ok := s.TypeWithin(schematype.Detail{Depth: 1}, most); ok != fits || less || text != want {
			t.Errorf("%d: got %s, %v, %v", most, text, less, ok)
		}
	}
}
