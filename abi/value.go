package abi

// Value is a WIT value as it crosses the boundary. Its Go type follows from its [Type]:
//
//	bool                       bool
//	s8 ... s64, u8 ... u64     int8 ... int64, uint8 ... uint64
//	f32, f64                   float32, float64
//	char                       rune (int32)
//	string                     string
//	list<u8>                   []byte
//	list<T>                    []Value
//	record, tuple              []Value, in the order of the fields
//	variant, enum              Variant; an enum's Value is nil
//	option                     Variant: case 0 is none, case 1 some
//	result                     Variant: case 0 is ok, case 1 err; `_` has a nil Value
//	flags                      uint32, one bit a label, the first label in bit 0
//	own, borrow                Rep
type Value = any

// The most bytes of one value that a capability takes or returns: of a list<u8>, unless [Bounded] says otherwise for an argument, and of
// a string.
const (
	MaxBytes = 256 << 10
	MaxText  = 16 << 20
)

// Variant is the value of a variant, enum, option or result.
type Variant struct {
	Case  uint32
	Value Value
}

// Rep is the host's identifier of a resource. A guest holds an index into its own table and cannot forge a Rep.
type Rep uint32
