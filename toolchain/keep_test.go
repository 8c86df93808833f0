package toolchain_test

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// edited is a tree whose files change after a number of reads.
type edited struct {
	before, after fs.FS
	left          atomic.Int32
}

// Open implements fs.FS.
func (e *edited) Open(name string) (fs.File, error) {
	if e.left.Add(-1) < 0 {
		return e.after.Open(name)
	}
	return e.before.Open(name)
}

// A component contains the source from which it was built, or the build fails.
func TestSourceChangesWhileItIsBuilt(t *testing.T) {
	_, tools := newToolchain(t, host.Options{})
	// A source that is not in the cache is read three times: to look up its bundle, to bundle it and to store it.
	before, after := tool("", `return "`+rand.Text()+`";`), tool("", `return "another one";`)
	files := &edited{before: before.FS, after: after.FS}
	files.left.Store(2)
	_, err := tools.Assemble(t.Context(), toolchain.Source{FS: files, Entry: before.Entry}, false)
	if bad, ok := errors.AsType[*toolchain.BuildError](err); !ok || bad.Problems[0].File != "tool.ts" || !strings.Contains(bad.Problems[0].Text, "changed while it was built") {
		t.Errorf("got %v", err)
	}
}
