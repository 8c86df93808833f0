package host

import "testing"

func FuzzCheckCode(f *testing.F) {
	const header = "\x00asm\x01\x00\x00\x00"
	f.Add([]byte(header + "\x01\x05\x01\x60\x01\x7f\x00" + "\x0a\x0c\x01\x0a\x01\x02\x7f\x03\x40\x41\x00\x0d\x00\x0b\x0b"))
	f.Add([]byte("\x00asm\x0d\x00\x01\x00\x01\x10" + header + "\x0a\x06\x01\x04\x00\x0e\xff\x0b"))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		var cost codeCost
		if err := checkModule(wasm, &cost); err == nil && (cost.values < 0 || cost.squares < 0) {
			t.Errorf("%+v", cost)
		}
		_ = checkCode(wasm) // that it returns is all
	})
}
