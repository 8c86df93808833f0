package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/stilehost/stile/extension/project"
)

type newCommand struct {
	Name     string `arg:"" help:"Name of the extension, and of the folder to make here."`
	Language string `short:"l" complete:"language" default:"typescript" help:"rust, go, c, python, javascript or typescript. Default: ${default}."`
	Template string `short:"t" complete:"template" default:"basic" help:"What the project begins with: basic, and in TypeScript also http, notes, npm, multi-file or tests. Default: ${default}."`
	JSON     bool   `name:"json" help:"Print the files and the commands as JSON."`
}

// Help implements kong.HelpProvider.
func (*newCommand) Help() string {
	return `The project has tools, its manifest, and tests of each tool. The output says what building it needs, and the commands to build, test and run it. They need stile on your path.

Templates: basic has a tool that computes and one that uses a binding. http asks a server, within a rule. notes keeps files in a workspace. npm uses a package. multi-file is a folder of files. tests shows what tests can say.

Everything that belongs to Stile is in the project: the SDK is in the folder stile, or the WIT for toolchains that make bindings of it in the folder wit, as this version of stile has them. So stile itself needs no network. The toolchains of Rust, Python and JavaScript fetch their packages when you build.

A name has lower-case words with "-" between them. A folder or file of the name is never changed.

Examples:

    stile new greeter
    stile new greeter --language rust
    stile new greeter --language c --json
    stile new releases --template http`
}

type newJSON struct {
	Folder string   `json:"folder"`
	Files  []string `json:"files"`
	Needs  string   `json:"needs"`
	Build  string   `json:"build,omitempty"`
	Test   string   `json:"test"`
	Setup  string   `json:"setup,omitempty"`
	Run    string   `json:"run"`
	Add    string   `json:"add"`
}

// Run implements the command.
func (c *newCommand) Run(s *streams) error {
	p, err := project.New(c.Name, c.Language, c.Template)
	if err != nil {
		return &usageError{err}
	}
	if err := writeFolder(c.Name, p.Files); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.out, newJSON{c.Name, slices.Sorted(maps.Keys(p.Files)), p.Needs, p.Build, p.Test, p.Setup, p.Run, p.Add})
	}
	var commands strings.Builder
	for _, command := range []string{p.Build, p.Test, p.Setup, p.Run} {
		if command != "" {
			fmt.Fprintf(&commands, "    %s\n", command)
		}
	}
	_, err = fmt.Fprintf(s.out, "%s/ has an extension in %s, with the %s %s. Building it needs %s.\n\n    cd %[1]s\n%[6]s\nREADME.md has more.\n",
		c.Name, c.Language, english.PluralWord(len(p.Tools), "tool", ""), english.WordSeries(p.Tools, "and"), p.Needs, commands.String())
	return err
}

// writeFolder makes a folder with files, whole or not at all. It is an error if there is anything of this name.
func writeFolder(name string, files map[string][]byte) (err error) {
	taken := func() error { return usagef("%s exists already; choose another name, or remove it", name) }
	if _, err := os.Lstat(name); err == nil {
		return taken()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	beside, err := os.MkdirTemp(".", "."+name+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(beside)) }()
	folder := filepath.Join(beside, name)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(folder, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[file], 0o666); err != nil {
			return err
		}
	}
	if err := os.Rename(folder, name); errors.Is(err, fs.ErrExist) {
		return taken()
	} else if err != nil {
		return err
	}
	return nil
}
