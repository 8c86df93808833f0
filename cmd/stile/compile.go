package main

import (
	"os"

	"github.com/stilehost/stile/host"
)

// compileCommand is the program of host.Options.Compiler: this one starts itself.
type compileCommand struct{}

func (*compileCommand) Run(s *streams) error { return host.Compile(s.in, s.out) }

// compiler is the command line of compileCommand; nothing where the system does not say which program this is.
func compiler() []string {
	program, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{program, "compile-component"}
}
