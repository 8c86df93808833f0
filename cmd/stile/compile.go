package main

import (
	"os"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// compileCommand is the program of host.Options.Compiler. Stile starts itself for it.
type compileCommand struct{}

func (*compileCommand) Run(s *streams) error { return host.Compile(s.in, s.out) }

// bundleCommand is the program of toolchain.Options.Bundler.
type bundleCommand struct{}

func (*bundleCommand) Run(s *streams) error { return toolchain.Bundle(s.in, s.out) }

// compiler and bundler are the command lines of these two. They are empty if the system does not say which program this is.
func compiler() []string { return itself("compile-component") }
func bundler() []string  { return itself("bundle-source") }

func itself(command string) []string {
	program, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{program, command}
}
