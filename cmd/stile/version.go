package main

import (
	"fmt"
	"runtime/debug"
)

type versionCommand struct {
	asJSON
}

// Help implements kong.HelpProvider.
func (*versionCommand) Help() string {
	return `Examples:

    stile version
    stile version --json`
}

// versions says what the program was built from.
type versions struct {
	Stile    string `json:"stile"`
	Go       string `json:"go"`
	Wasmtime string `json:"wasmtime"`
}

func readVersions() versions {
	v := versions{Stile: "unknown", Go: "unknown", Wasmtime: "unknown"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Stile, v.Go = build.Main.Version, build.GoVersion
	for _, m := range build.Deps {
		if m.Path == "github.com/bytecodealliance/wasmtime-go/v44" {
			v.Wasmtime = m.Version
		}
	}
	return v
}

// Run implements the command.
func (c *versionCommand) Run(s *streams) error {
	v := readVersions()
	if c.JSON {
		return printJSON(s.out, v)
	}
	_, err := fmt.Fprintf(s.out, "stile %s (%s, wasmtime %s)\n", v.Stile, v.Go, v.Wasmtime)
	return err
}
