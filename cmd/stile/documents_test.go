package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/stilehost/stile/internal/cache/cachetest"
)

var update = flag.Bool("update", false, "write docs/cli.md, docs/demo.svg and the output of commands in the documents anew")

// fence is a block of a document. Its info string is a language and, if commands need it as a file, the file's name.
var fence = regexp.MustCompile("(?ms)^```(\\w+)(?: ([^\n]+))?\n(.*?)^```$")

// documents are the README and the pages in docs.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatal(pages, err)
	}
	return append(pages, "../../README.md")
}

// TestDocuments runs the commands of every document with bash, in order, in a separate folder and STILE_HOME. A block
// `console` has commands after "$ " and their output; "..." matches any text, and alone on a line any lines. A command
// that fails is followed by `$ echo $?`. Variables that a block exports stay set for the next blocks. STILE_HOME and STILE_USER are not set: a page
// whose commands need an empty home, or the name ada, says so. A block with a file name is written to that file. Blocks `sh` need things that a test
// does not have, so the test only checks their calls.
func TestDocuments(t *testing.T) {
	dir, keyDir := cachetest.Dirs(t)
	prepareCache(t, dir, keyDir)
	programs := buildSigstore(t)
	images := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(images.Close)
	ran := 0
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		ran += len(fence.FindAll(text, -1))
		t.Run(filepath.Base(page), func(t *testing.T) {
			s := newShell(t, dir, keyDir)
			s.env = append(s.env, "REGISTRY="+strings.TrimPrefix(images.URL, "http://"), "PATH="+programs+string(filepath.ListSeparator)+os.Getenv("PATH"))
			if page == "../../README.md" {
				s.onlyInBin(t)
			}
			got := fence.ReplaceAllStringFunc(string(text), func(block string) string {
				part := fence.FindStringSubmatch(block)
				switch language, name, content := part[1], part[2], part[3]; {
				case language == "console":
					return "```console\n" + s.session(t, content) + "```"
				case language == "sh":
					parses(t, content)
				case name != "":
					s.write(t, name, content)
				}
				return block
			})
			s.leavesAlone(t, page == "../../README.md")
			if *update && got != string(text) {
				if err := os.WriteFile(page, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if ran < 50 {
		t.Errorf("only %d blocks were found", ran)
	}
}

// TestDocumentedPairs adds NAME.ts of any page with the manifest NAME.json of any page, with types checked, so tools and bindings must match.
func TestDocumentedPairs(t *testing.T) {
	dir, keyDir := cachetest.Dirs(t)
	prepareCache(t, dir, keyDir)
	s := newShell(t, dir, keyDir)
	files := map[string]string{}
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range fence.FindAllStringSubmatch(string(text), -1) {
			if name := part[2]; name != "" && files[name] != "" {
				t.Errorf("two pages have a file %s", name)
			} else if name != "" {
				files[name] = part[3]
				s.write(t, name, part[3])
			}
		}
	}
	var added []string
	for name := range files {
		if stem, ok := strings.CutSuffix(name, ".ts"); ok && files[stem+".json"] != "" {
			added = append(added, name)
			if outputs, codes := s.run(t, []string{"stile ext add --types --no-approve " + name}); codes[0] != "0" {
				t.Errorf("%s and %s.json do not fit:\n%s", name, stem, outputs[0])
			}
		}
	}
	if len(added) < 2 {
		t.Errorf("only %q were found", added)
	}
}

// shell is an environment for commands, like a person's terminal.
type shell struct {
	dir  string
	home string // the home of commands that do not set STILE_HOME
	env  []string
}

func newShell(t *testing.T, cacheDir, keyDir string) *shell {
	t.Helper()
	data := t.TempDir()
	s := &shell{dir: t.TempDir(), home: filepath.Join(data, "stile")}
	key, err := os.ReadFile(filepath.Join(keyDir, "cache.key"))
	if err == nil {
		err = os.Mkdir(s.home, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(s.home, "cache.key"), key, 0o600) // other homes use it too
	}
	if err == nil {
		err = copyExamples(s.dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "STILE_") })
	s.env = append(s.env, "XDG_DATA_HOME="+data, "TMPDIR="+t.TempDir(), "STILE_CACHE="+cacheDir, "STILE_KEYRING=off", "LC_ALL=C.UTF-8", "TZ=UTC", "NO_COLOR=1")
	return s
}

// onlyInBin has stile in make's output folder, and nowhere on the path.
func (s *shell) onlyInBin(t *testing.T) {
	t.Helper()
	program, err := exec.LookPath("stile")
	if err == nil {
		err = os.Mkdir(filepath.Join(s.dir, "bin"), 0o700)
	}
	if err == nil {
		err = os.Symlink(program, filepath.Join(s.dir, "bin", "stile"))
	}
	if err != nil {
		t.Fatal(err)
	}
	folders := slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "stile"))
		return err == nil
	})
	s.env = append(s.env, "PATH="+strings.Join(folders, string(filepath.ListSeparator)))
}

// leavesAlone checks that a page does not change the examples, which belong to the clone, or the reader's home.
func (s *shell) leavesAlone(t *testing.T, mayUseHome bool) {
	t.Helper()
	clean := t.TempDir()
	if err := copyExamples(clean); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "diff", "-r", filepath.Join(clean, "examples"), filepath.Join(s.dir, "examples")).CombinedOutput(); err != nil {
		t.Errorf("the examples were changed: %v\n%s", err, out)
	}
	kept, err := filepath.Glob(filepath.Join(s.home, "*"))
	if err != nil || len(kept) != 1 && !mayUseHome {
		t.Errorf("the page needs a line like `export STILE_HOME=$(mktemp -d) STILE_USER=ada`: it keeps %q (%v)", kept, err)
	}
}

func (s *shell) write(t *testing.T, name, content string) {
	t.Helper()
	file := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// step is a command and its output.
type step struct{ command, output string }

// steps reads a session. A backslash at the end of a line continues it.
func steps(session string) (all []step) {
	open := false
	for line := range strings.Lines(session) {
		command, is := strings.CutPrefix(line, "$ ")
		switch {
		case open:
			all[len(all)-1].command += line
		case is:
			all = append(all, step{command: command})
		case len(all) > 0:
			all[len(all)-1].output += line
			continue
		}
		open = strings.HasSuffix(line, "\\\n")
	}
	return all
}

// unshown is the line that a command prints for programs, and its message when other tests change the shared cache.
var unshown = regexp.MustCompile(`(?m)^(\{"error":|stile: cache ).*\n`)

// run runs commands in one bash process, so that each sees the effects of earlier ones, and returns the output of each.
func (s *shell) run(t *testing.T, commands []string) (outputs []string, codes []string) {
	t.Helper()
	const mark = "\x1e"
	var script strings.Builder
	script.WriteString("code=0\n")
	for _, c := range commands {
		fmt.Fprintf(&script, "(exit $code)\n%s\ncode=$?; printf '%s%%d%s' $code\n", strings.TrimSuffix(c, "\n"), mark, mark)
	}
	script.WriteString("env -0\n")
	command := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	command.Dir, command.Env = s.dir, s.env
	out, err := command.CombinedOutput()
	parts := strings.Split(string(out), mark)
	if len(parts) != 2*len(commands)+1 {
		t.Fatalf("the session ended early: %v\n%s", err, out)
	}
	s.env = strings.Split(strings.TrimSuffix(parts[2*len(commands)], "\x00"), "\x00") // for the next ones
	for i := range commands {
		outputs = append(outputs, unshown.ReplaceAllString(strings.ReplaceAll(parts[2*i], s.dir, "."), ""))
		codes = append(codes, parts[2*i+1])
	}
	return outputs, codes
}

// session runs a block and returns it with the actual output where that differs.
func (s *shell) session(t *testing.T, block string) string {
	t.Helper()
	all := steps(block)
	var commands []string
	for _, one := range all {
		commands = append(commands, one.command)
	}
	outputs, codes := s.run(t, commands)
	var real strings.Builder
	for i, one := range all {
		said := codes[i] == "0" || i+1 < len(all) && strings.TrimSpace(all[i+1].command) == "echo $?"
		if !said {
			t.Errorf("$ %sexit code %s:\n%s", one.command, codes[i], outputs[i])
		}
		shown := outputs[i]
		t.Logf("$ %s%s", one.command, shown)
		if printed(one.output).MatchString(shown) {
			shown = one.output
		} else if !*update {
			t.Errorf("$ %sprints\n%s\nand not\n%s", one.command, shown, one.output)
		}
		real.WriteString("$ " + one.command + shown)
	}
	return real.String()
}

// printed is the pattern of a command's output in a document.
func printed(text string) *regexp.Regexp {
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for line := range strings.Lines(text) {
		if line == "...\n" {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, " \n")), `\.\.\.`, `.*`) + ` *\n`)
	}
	return regexp.MustCompile(pattern.String() + `\z`)
}

// parses checks the stile calls in commands that cannot be run here.
func parses(t *testing.T, commands string) {
	t.Helper()
	printing := exec.CommandContext(t.Context(), "bash", "-c", "stile() { printf '%s\\x1f' \"$@\"; printf '\\x1e'; }\n"+
		"for c in cat cosign claude npm make; do eval \"$c() { :; }\"; done\n"+commands)
	printing.Stdin = strings.NewReader("")
	out, err := printing.Output()
	if err != nil {
		t.Fatalf("%s\n%v", commands, err)
	}
	for call := range bytes.SplitSeq(out, []byte{0x1e}) {
		if len(call) == 0 {
			continue
		}
		args := strings.Split(strings.TrimSuffix(string(call), "\x1f"), "\x1f")
		parser, err := newParser(t.Context(), &streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("stile %s: %v", strings.Join(args, " "), err)
		}
	}
}

// Errors in a document are detected.
func TestWrongDocuments(t *testing.T) {
	for text, prints := range map[string][]string{
		"a\n":             {"a\n"},
		"a ... c\n":       {"a b c\n"},
		"a\n...\nd\n":     {"a\nd\n", "a\nb\nc\nd\n"},
		"":                {""},
		"12...  x (y)*\n": {"12345  x (y)*\n"},
	} {
		for _, p := range prints {
			if !printed(text).MatchString(p) {
				t.Errorf("%q does not match %q", text, p)
			}
		}
		for _, p := range []string{"b\n", "a\nd\ne\n", "a ... d\n", "12x (y)*\n"} {
			if !slices.Contains(prints, p) && printed(text).MatchString(p) {
				t.Errorf("%q matches %q", text, p)
			}
		}
	}
	want := []step{{"a \\\n  b\n", "c\n"}, {"d\n", ""}}
	if got := steps("$ a \\\n  b\nc\n$ d\n"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestReference compares docs/cli.md with the definition of the command line. With -update it writes the file.
func TestReference(t *testing.T) {
	var out bytes.Buffer
	out.WriteString("# Command line\n\nThis page is generated from the commands' own help: `go generate ./cmd/stile` writes it.\n\n```text\n")
	help := func(args ...string) {
		parser, err := kong.New(&cli{}, kong.Name("stile"), kong.Description(description), kong.Writers(&out, io.Discard), kong.Exit(func(int) {}),
			kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, WrapUpperBound: 100}), kong.Help(help), numbers())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = parser.Parse(append(args, "--help")) // the help is printed before missing arguments are detected
	}
	help()
	out.WriteString("```\n\n")
	parser, err := newParser(t.Context(), &streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	var walk func(n *kong.Node, do func(c *kong.Node))
	walk = func(n *kong.Node, do func(c *kong.Node)) {
		for _, c := range n.Children {
			if !c.Hidden {
				do(c)
				walk(c, do)
			}
		}
	}
	walk(parser.Model.Node, func(c *kong.Node) {
		fmt.Fprintf(&out, "- [%s](#%s): %s\n", c.FullPath(), strings.ReplaceAll(c.FullPath(), " ", "-"), c.Help)
	})
	walk(parser.Model.Node, func(c *kong.Node) {
		fmt.Fprintf(&out, "\n## %s\n\n```text\n", c.FullPath())
		if c.Passthrough { // its help is that of the program that it starts
			fmt.Fprintf(&out, "%s\n\n%s\n", c.Help, c.Detail)
		} else {
			help(strings.Fields(c.FullPath())[1:]...)
		}
		out.WriteString("```\n")
	})
	golden(t, "../../docs/cli.md", out.Bytes())
}

// golden compares a file with its expected content, or writes it.
func golden(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%s is not what it should be: go generate ./cmd/stile writes it", file)
	}
}
