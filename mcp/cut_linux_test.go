package mcp

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stilehost/stile/internal/usagetest"
)

// mib is the default of host.Limits.Output.
const mib = 1 << 20

// hostileOutputs are outputs of one mebibyte, by their content.
func hostileOutputs() map[string]string {
	list := func(item string) string { return "[" + item + strings.Repeat(","+item, mib/(len(item)+1)-1) + "]" }
	var fields strings.Builder
	for i := 0; fields.Len() < mib-10; i++ {
		fmt.Fprintf(&fields, `,"%x":0`, i)
	}
	// Each object has small fields beside the next object.
	nested := strings.Repeat(`{"z":`+list("0")[:mib/400]+`],"y":`, 400) + "0" + strings.Repeat("}", 400)
	return map[string]string{
		"objects of one": list(`{"":0}`), "empty lists": list(`[]`), "numbers": list("0"), "texts": list(`""`), "nested objects": nested,
		"lists in lists": list(strings.Repeat("[", 90) + strings.Repeat("]", 90)),
		"fields":         "{" + fields.String()[1:] + "}", "fields of one name": "{" + strings.TrimSuffix(strings.Repeat(`"":0,`, mib/5), ",") + "}",
		"objects in objects": strings.Repeat(`{"":{},"":`, mib/11) + "0" + strings.Repeat("}", mib/11), // deeper than a decoder goes
		"escapes":            `"` + strings.Repeat(`\u0000`, mib/6) + `"`, "line separators": `"` + strings.Repeat("\u2028", mib/3) + `"`,
		"fields in objects": strings.Repeat(`{"a":{`+fields.String()[1:mib/90]+`"0":0},"b":`, 90) + "0" + strings.Repeat("}", 90),
	}
}

// TestCutsTakeLittle cuts outputs that take up to 70 times their size when decoded, 16 at once, each in a separate process. It
// measures how far that process's peak memory rose.
func TestCutsTakeLittle(t *testing.T) {
	outputs := hostileOutputs()
	if name := os.Getenv("STILE_TEST_CUT"); name != "" {
		cutMany(t, []byte(outputs[name]))
		return
	}
	t.Parallel()
	for name := range outputs {
		kib, out, err := usagetest.Grown(t, "TestCutsTakeLittle", "STILE_TEST_CUT="+name)
		if err != nil || kib > 384<<10 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		t.Logf("%s: %d KiB", name, kib)
	}
}

// cutMany runs in the separate process.
func cutMany(t *testing.T, output []byte) {
	usagetest.Tell(t, func() {
		var ended sync.WaitGroup
		for range 16 {
			ended.Go(func() { cutJSON(output, 25_000, true) })
		}
		ended.Wait()
	})
}
