package child_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/internal/child"
)

func init() {
	if len(os.Args) != 2 {
		return
	}
	switch os.Args[1] {
	case "as-parent":
		err := child.Run(context.Background(), []string{os.Args[0], "as-child"}, nil, child.Limits{}, func(_ io.WriteCloser, from io.Reader) error {
			_, err := io.ReadAll(from)
			return err
		})
		panic(err)
	case "as-child":
		<-time.After(2 * time.Minute)
	}
}

// TestEndsWithParent kills a program whose child never ends.
func TestEndsWithParent(t *testing.T) {
	parent := exec.CommandContext(t.Context(), os.Args[0], "as-parent")
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var child string
	for child == "" {
		lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent.Process.Pid))
		if err != nil || len(lists) == 0 {
			t.Fatalf("the parent is gone, %v", err)
		}
		for _, name := range lists {
			list, _ := os.ReadFile(name) // threads end
			for process := range strings.FieldsSeq(string(list)) {
				if line, _ := os.ReadFile("/proc/" + process + "/cmdline"); strings.HasSuffix(string(line), "\x00as-child\x00") {
					child = process
				}
			}
		}
		runtime.Gosched()
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		stat, err := os.ReadFile("/proc/" + child + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %s goes on: %s", child, stat)
		}
	}
}
