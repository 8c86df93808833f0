package host

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sync/semaphore"
)

// Errors of a value of which everything is wrong take no memory that the value itself does not take: without a bound each would have
// its place, as long as the value is deep.
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
				s, err := (&compiler{loader: noLoader{}, schemas: map[string]*schema{}}).compile(strings.ReplaceAll(c.schema, "TYPE", as))
				if err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err = s.validate(t.Context(), semaphore.NewWeighted(maxValidating), []byte(c.value))
				runtime.ReadMemStats(&after)
				return after.TotalAlloc - before.TotalAlloc, err
			}
			right, err := validate(c.right)
			if err != nil {
				t.Fatalf("what is right: %v", err)
			}
			wrong, err := validate(c.wrong)
			if !errors.As(err, new(*InputError)) || !strings.Contains(err.Error(), "try a smaller one") {
				t.Errorf("got %.300v", err)
			}
			if wrong > 2*right {
				t.Errorf("%d bytes, where a value that is right takes %d", wrong, right)
			}
		})
	}
}
