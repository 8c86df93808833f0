package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestMemoryOfParts adds up the parts of the memory of a server in SECURITY.md. The sum is below the stated bound.
func TestMemoryOfParts(t *testing.T) {
	text, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Memory of a server\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, after, _ := strings.Cut(section, "stays below ")
	var gib float64
	if _, err := fmt.Sscanf(after, "%g GiB", &gib); err != nil {
		t.Fatal(err)
	}
	sum, parts := 0, regexp.MustCompile(`(?m)^\|.*\| ([\d,]+) \|$`).FindAllStringSubmatch(section, -1)
	for _, part := range parts {
		mib, err := strconv.Atoi(strings.ReplaceAll(part[1], ",", ""))
		if err != nil {
			t.Fatal(err)
		}
		sum += mib
	}
	if len(parts) < 10 || sum > int(gib*1024) {
		t.Errorf("%d parts have %d MiB, and the bound is %g GiB", len(parts), sum, gib)
	}
	t.Logf("%d MiB", sum)
}
