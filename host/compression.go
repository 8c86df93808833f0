package host

import (
	"context"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/deflate"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/wordtext"
)

// What open codecs take, in bytes: those of one call, and those of all calls of a host, which users share fairly.
const (
	callCodecs = 32 * mib
	allCodecs  = 64 * mib
)

// codecs are the functions of stile:capability/compression that open one. A replay runs them again: their answers depend on their arguments
// only.
var codecs = map[string]func(args []abi.Value) (codec, error){
	"compress": func(args []abi.Value) (codec, error) {
		w, err := deflate.NewWriter(formats[args[1].(abi.Variant).Case], int(args[2].(uint8)))
		if err != nil {
			return nil, abi.Errorf(abi.CodeInvalid, "%v", err)
		}
		return compressor{w}, nil
	},
	"decompress": func(args []abi.Value) (codec, error) {
		return decompressor{deflate.NewReader(formats[args[1].(abi.Variant).Case])}, nil
	},
}

// formats are those of the enum `format`.
var formats = [...]deflate.Format{deflate.Gzip, deflate.Zlib, deflate.Raw}

// codec compresses or decompresses. It is closed once.
type codec interface {
	step(input []byte, flush deflate.Flush) (codecOutput, error)
	// Memory is the most bytes that it takes.
	Memory() int
	Close() error
}

type codecOutput struct {
	Bytes string
	More  bool
	Rest  *uint32
}

// openCodec opens a codec for a call, if it has memory for it.
func (c *call) openCodec(f *abi.Func, args []abi.Value, open func(args []abi.Value) (codec, error)) (abi.Value, error) {
	made, err := open(args)
	if err != nil {
		return c.errResult(f.Result, err)
	}
	n := int64(made.Memory())
	if c.codecs+n > callCodecs || !c.host.codecs.Take(c.frame.user, n) {
		_ = made.Close() // which cannot fail
		return c.errResult(f.Result, abi.Errorf(abi.CodeExhausted, "memory for open compressors and decompressors, of which a call may have %s and all calls %s; read each stream to its end, or cancel it, before you begin many others",
			printable.Size(callCodecs), printable.Size(allCodecs)))
	}
	c.codecs += n
	rep, err := scoped{call: c}.Add(f.Result.Ok.Resource, &openedCodec{made, c})
	if err != nil {
		return nil, err
	}
	return okResult(rep), nil
}

// openedCodec is the resource `codec`.
type openedCodec struct {
	codec codec
	call  *call
}

// Quick implements [abi.Quick].
func (*openedCodec) Quick() []string { return []string{"codec.step"} }

// Step takes input and returns output, each at most deflate.Piece.
func (o *openedCodec) Step(_ context.Context, input string, flush uint8) (codecOutput, error) {
	if len(input) > wordtext.Length(deflate.Piece+16) {
		return codecOutput{}, &abi.Error{Code: abi.CodeTooLarge, Size: uint64(len(input))}
	}
	data, ok := wordtext.Unpack(input)
	if !ok {
		return codecOutput{}, abi.Errorf(abi.CodeInvalid, "the input is no text of bytes")
	}
	output, err := o.codec.step(data, deflate.Flush(flush))
	if err != nil {
		return codecOutput{}, abi.Errorf(abi.CodeInvalid, "%v", err)
	}
	return output, nil
}

// Close implements io.Closer.
func (o *openedCodec) Close() error {
	n := int64(o.codec.Memory())
	o.call.codecs -= n
	o.call.host.codecs.Give(o.call.frame.user, n)
	return o.codec.Close()
}

type compressor struct{ *deflate.Writer }

func (w compressor) step(input []byte, flush deflate.Flush) (codecOutput, error) {
	output, more, err := w.Step(input, flush)
	return codecOutput{Bytes: wordtext.Pack(output), More: more}, err
}

type decompressor struct{ *deflate.Reader }

func (r decompressor) step(input []byte, _ deflate.Flush) (codecOutput, error) {
	var o codecOutput
	more, ended, rest, err := r.Step(input, func(output []byte) { o.Bytes = wordtext.Pack(output) })
	if o.More = more; ended {
		if o.Rest = new(uint32(rest)); o.Bytes == "" { // it had ended before
			o.Bytes = wordtext.Pack(nil)
		}
	}
	return o, err
}
