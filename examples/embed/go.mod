module example.com/embed

go 1.26.0

require github.com/stilehost/stile v0.0.0

require (
	github.com/bytecodealliance/wasmtime-go/v44 v44.0.0 // indirect
	github.com/evanw/esbuild v0.28.2 // indirect
	github.com/gofrs/flock v0.13.1 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/stilehost/stile => ../..
