package toolchain

import (
	"fmt"
	"strings"
	"testing"
)

// TestStars has modules that re-export each other on too many paths to follow, and modules that people write.
func TestStars(t *testing.T) {
	for name, c := range map[string]struct {
		n       int
		of      func(i, n int) string
		refused bool
	}{
		"doubled":              {40, func(i, _ int) string { return strings.Repeat(fmt.Sprintf("export * from './m%d';", i+1), 2) }, true},
		"with comments":        {40, func(i, _ int) string { return strings.Repeat(fmt.Sprintf("export/**/*//\nfrom/**/'./m%d';", i+1), 2) }, true},
		"with other line ends": {40, func(i, _ int) string { return strings.Repeat(fmt.Sprintf("export//\r*//\u2028from'./m%d';", i+1), 2) }, true},
		"all of all": {14, func(_, n int) string {
			text := ""
			for j := range n {
				text += fmt.Sprintf("export * from './m%d';", j)
			}
			return text
		}, true},
		"many names in a row": {1500, func(i, _ int) string { return fmt.Sprintf("export * from './m%d';", i+1) }, true},
		"a list": {300, func(i, n int) string {
			text := ""
			for j := 1; i == 0 && j < n; j++ {
				text += fmt.Sprintf("export * from './m%d';", j)
			}
			return text + fmt.Sprintf("export const a%d = 1;", i)
		}, false},
		"a row": {30, func(i, _ int) string { return fmt.Sprintf("export * from './m%d';", i+1) }, false},
	} {
		files := map[string]string{"main.ts": "import * as m from './m0'; export default m;"}
		for i := range c.n {
			files[fmt.Sprintf("m%d.ts", i)] = c.of(i, c.n)
		}
		last := "export let z"
		for i := range 2000 {
			last += fmt.Sprintf(",b%d", i)
		}
		files[fmt.Sprintf("m%d.ts", c.n)] = last
		_, err := bundleTree(t, "main.ts", files)
		if refused := err != nil && strings.Contains(err.Error(), "has export * of too many"); refused != c.refused || err != nil && !refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
