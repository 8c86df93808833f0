package guard

import "github.com/stilehost/stile/internal/wasmbin"

type reader = wasmbin.Reader

type writer = wasmbin.Writer
