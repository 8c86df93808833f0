// Command files is a tool whose work is in files.go, which uses only the standard library.
package main

import stile "github.com/stilehost/stile/guest-sdk/go"

func init() {
	for name, do := range map[string]func(string) (string, error){"files": all, "read": read, "write": write, "list": list} {
		stile.Tool(name, "Works on files", func(_ *stile.Env, in struct {
			Path string `json:"path"`
		}) (string, error) {
			return do(in.Path)
		})
	}
}

func main() {}
