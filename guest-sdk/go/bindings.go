// Code generated from the WIT by guest-sdk/generate. DO NOT EDIT.

//go:build wasip1

package stile

import (
	"errors"
	"unsafe"
)

type Denial struct {
	// The binding the operation went through, e.g. "github".
	Binding string
	// The operation that was denied, e.g. "POST https://api.github.com/user/repos".
	Operation string
	// Why no rule allows it.
	Reason string
	// The manifest line that would allow it.
	Remedy string
}

func storeDenial(c *call, p unsafe.Pointer, v Denial) {
	c.storeString(p, v.Binding)
	c.storeString(unsafe.Add(p, 8), v.Operation)
	c.storeString(unsafe.Add(p, 16), v.Reason)
	c.storeString(unsafe.Add(p, 24), v.Remedy)
}

func loadDenial(p unsafe.Pointer) Denial {
	return Denial{
		Binding:   loadString(p),
		Operation: loadString(unsafe.Add(p, 8)),
		Reason:    loadString(unsafe.Add(p, 16)),
		Remedy:    loadString(unsafe.Add(p, 24)),
	}
}

type Error interface {
	error
	isError()
}

type ErrorDenied struct{ Value Denial }

func (ErrorDenied) isError() {}

// The reason that the revoker gave.
type ErrorRevoked struct{ Value string }

func (ErrorRevoked) isError() {}

type ErrorExpired struct{}

func (ErrorExpired) isError() {}

// A budget or limit was reached. The text names it and its value.
type ErrorExhausted struct{ Value string }

func (ErrorExhausted) isError() {}

type ErrorTimedOut struct{}

func (ErrorTimedOut) isError() {}

type ErrorTooLarge struct{ Value uint64 }

func (ErrorTooLarge) isError() {}

type ErrorNotFound struct{ Value string }

func (ErrorNotFound) isError() {}

type ErrorAlreadyExists struct{ Value string }

func (ErrorAlreadyExists) isError() {}

// The content changed since it was read.
type ErrorConflict struct{ Value string }

func (ErrorConflict) isError() {}

type ErrorInvalid struct{ Value string }

func (ErrorInvalid) isError() {}

// The other side failed: connection, TLS, protocol, disk.
type ErrorUnavailable struct{ Value string }

func (ErrorUnavailable) isError() {}

// The process ended during the operation. It may have happened. Only durable calls see this.
type ErrorInterrupted struct{ Value string }

func (ErrorInterrupted) isError() {}

func storeError(c *call, p unsafe.Pointer, v Error) {
	switch v := v.(type) {
	case nil:
		panic("a Error is nil")
	case ErrorDenied:
		*(*uint8)(p) = 0
		storeDenial(c, unsafe.Add(p, 8), v.Value)
	case ErrorRevoked:
		*(*uint8)(p) = 1
		c.storeString(unsafe.Add(p, 8), v.Value)
	case ErrorExpired:
		*(*uint8)(p) = 2
	case ErrorExhausted:
		*(*uint8)(p) = 3
		c.storeString(unsafe.Add(p, 8), v.Value)
	case ErrorTimedOut:
		*(*uint8)(p) = 4
	case ErrorTooLarge:
		*(*uint8)(p) = 5
		*(*uint64)(unsafe.Add(p, 8)) = v.Value
	case ErrorNotFound:
		*(*uint8)(p) = 6
		c.storeString(unsafe.Add(p, 8), v.Value)
	case ErrorAlreadyExists:
		*(*uint8)(p) = 7
		c.storeString(unsafe.Add(p, 8), v.Value)
	case ErrorConflict:
		*(*uint8)(p) = 8
		c.storeString(unsafe.Add(p, 8), v.Value)
	case ErrorInvalid:
		*(*uint8)(p) = 9
		c.storeString(unsafe.Add(p, 8), v.Value)
	case ErrorUnavailable:
		*(*uint8)(p) = 10
		c.storeString(unsafe.Add(p, 8), v.Value)
	case ErrorInterrupted:
		*(*uint8)(p) = 11
		c.storeString(unsafe.Add(p, 8), v.Value)
	}
}

func loadError(p unsafe.Pointer) Error {
	switch *(*uint8)(p) {
	case 0:
		return ErrorDenied{loadDenial(unsafe.Add(p, 8))}
	case 1:
		return ErrorRevoked{loadString(unsafe.Add(p, 8))}
	case 2:
		return ErrorExpired{}
	case 3:
		return ErrorExhausted{loadString(unsafe.Add(p, 8))}
	case 4:
		return ErrorTimedOut{}
	case 5:
		return ErrorTooLarge{*(*uint64)(unsafe.Add(p, 8))}
	case 6:
		return ErrorNotFound{loadString(unsafe.Add(p, 8))}
	case 7:
		return ErrorAlreadyExists{loadString(unsafe.Add(p, 8))}
	case 8:
		return ErrorConflict{loadString(unsafe.Add(p, 8))}
	case 9:
		return ErrorInvalid{loadString(unsafe.Add(p, 8))}
	case 10:
		return ErrorUnavailable{loadString(unsafe.Add(p, 8))}
	case 11:
		return ErrorInterrupted{loadString(unsafe.Add(p, 8))}
	}
	panic("unknown case")
}

type Header struct {
	Name  string
	Value string
}

func storeHeader(c *call, p unsafe.Pointer, v Header) {
	c.storeString(p, v.Name)
	c.storeString(unsafe.Add(p, 8), v.Value)
}

func loadHeader(p unsafe.Pointer) Header {
	return Header{
		Name:  loadString(p),
		Value: loadString(unsafe.Add(p, 8)),
	}
}

// Env is a handle of stile:capability/env/env.
type Env struct{ handle uint32 }

//go:wasmimport stile:capability/env@0.1.0 [resource-drop]env
func dropEnv(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *Env) Drop() {
	if r.handle != 0 {
		dropEnv(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/env@0.1.0 [method]env.names
func import1(f0 uint32, f1 uint32)

// (name, interface) of each binding.
func (r *Env) Names() []struct {
	F0 string
	F1 string
} {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(8)
	f1 = c.keep(o)
	import1(f0, f1)
	return loadList(o, 16, func(p unsafe.Pointer) struct {
		F0 string
		F1 string
	} {
		return struct {
			F0 string
			F1 string
		}{loadString(p), loadString(unsafe.Add(p, 8))}
	})
}

//go:wasmimport stile:capability/env@0.1.0 [method]env.subset
func import2(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// A new env with only these names, at most 10,000. A missing name is an error.
func (r *Env) Subset(names []string) (out *Env, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	list3 := c.elements(len(names), 8)
	for k, v := range names {
		p := unsafe.Add(list3, k*8)
		c.storeString(p, v)
	}
	f1 = uint32(c.keep(list3))
	f2 = uint32(len(names))
	o := c.area(12)
	f3 = c.keep(o)
	import2(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = errors.New(loadString(unsafe.Add(o, 4)))
		return
	}
	out = &Env{*(*uint32)(unsafe.Add(o, 4))}
	return
}

//go:wasmimport stile:capability/env@0.1.0 [method]env.vars
func import4(f0 uint32, f1 uint32)

// What a person configured for the component whose call this is: the JSON text of an object, "{}" if there is nothing.
func (r *Env) Vars() string {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(8)
	f1 = c.keep(o)
	import4(f0, f1)
	return loadString(o)
}

// Blob is a handle of stile:capability/blob/blob.
type Blob struct{ handle uint32 }

//go:wasmimport stile:capability/blob@0.1.0 [resource-drop]blob
func dropBlob(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *Blob) Drop() {
	if r.handle != 0 {
		dropBlob(r.handle)
		r.handle = 0
	}
}

// BlobWriter is a handle of stile:capability/blob/writer.
type BlobWriter struct{ handle uint32 }

//go:wasmimport stile:capability/blob@0.1.0 [resource-drop]writer
func dropBlobWriter(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *BlobWriter) Drop() {
	if r.handle != 0 {
		dropBlobWriter(r.handle)
		r.handle = 0
	}
}

// Blobs cost host memory and disk, so creating one requires a store.
type BlobStore struct{ handle uint32 }

//go:wasmimport stile:capability/blob@0.1.0 [resource-drop]store
func dropBlobStore(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *BlobStore) Drop() {
	if r.handle != 0 {
		dropBlobStore(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/blob@0.1.0 [method]blob.size
func import5(f0 uint32) uint64

func (r *Blob) Size() uint64 {
	c := begin()
	defer c.end()
	var f0 uint32
	f0 = uint32(r.handle)
	return uint64(import5(f0))
}

//go:wasmimport stile:capability/blob@0.1.0 [method]blob.media-type
func import6(f0 uint32, f1 uint32)

func (r *Blob) MediaType() string {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(8)
	f1 = c.keep(o)
	import6(f0, f1)
	return loadString(o)
}

//go:wasmimport stile:capability/blob@0.1.0 [method]blob.digest
func import7(f0 uint32, f1 uint32)

// "sha256:<hex>".
func (r *Blob) Digest() string {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(8)
	f1 = c.keep(o)
	import7(f0, f1)
	return loadString(o)
}

//go:wasmimport stile:capability/blob@0.1.0 [method]blob.text
func import8(f0 uint32, f1 uint64, f2 uint32)

// The content as text. Fails with `invalid` if it is not UTF-8, and with `too-large` beyond `max` bytes.
func (r *Blob) Text(max uint64) (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint64
	var f2 uint32
	f0 = uint32(r.handle)
	f1 = uint64(max)
	o := c.area(48)
	f2 = c.keep(o)
	import8(f0, f1, f2)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/blob@0.1.0 [method]blob.bytes
func import9(f0 uint32, f1 uint64, f2 uint32, f3 uint32)

// At most 262,144 bytes a call.
func (r *Blob) Bytes(offset uint64, length uint32) (out []byte, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint64
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint64(offset)
	f2 = uint32(length)
	o := c.area(48)
	f3 = c.keep(o)
	import9(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadBytes(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/blob@0.1.0 [method]blob.packed
func import10(f0 uint32, f1 uint64, f2 uint32, f3 uint32)

// The same as a text, which is passed much faster than a list. It stands for words of 8 bytes, as the texts of
// `stile:extension/memory` do: first the number of bytes, then the bytes, and zeros up to a whole word.
func (r *Blob) Packed(offset uint64, length uint32) (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint64
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint64(offset)
	f2 = uint32(length)
	o := c.area(48)
	f3 = c.keep(o)
	import10(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/blob@0.1.0 [method]writer.append
func import11(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// At most 262,144 bytes a call.
func (r *BlobWriter) Append(bytes []byte) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.keep(unsafe.Pointer(unsafe.SliceData(bytes))))
	f2 = uint32(len(bytes))
	o := c.area(48)
	f3 = c.keep(o)
	import11(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/blob@0.1.0 [method]writer.append-text
func import12(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

func (r *BlobWriter) AppendText(text string) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(text))
	f2 = uint32(len(text))
	o := c.area(48)
	f3 = c.keep(o)
	import12(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/blob@0.1.0 [method]writer.append-blob
func import13(f0 uint32, f1 uint32, f2 uint32)

func (r *BlobWriter) AppendBlob(source *Blob) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	f0 = uint32(r.handle)
	f1 = uint32(source.handle)
	o := c.area(48)
	f2 = c.keep(o)
	import13(f0, f1, f2)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/blob@0.1.0 [method]store.create
func import14(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

func (r *BlobStore) Create(mediaType string) (out *BlobWriter, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(mediaType))
	f2 = uint32(len(mediaType))
	o := c.area(48)
	f3 = c.keep(o)
	import14(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BlobWriter{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/blob@0.1.0 [method]store.finish
func import15(f0 uint32, f1 uint32, f2 uint32)

func (r *BlobStore) Finish(writer *BlobWriter) (out *Blob, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	f0 = uint32(r.handle)
	f1 = uint32(give(&writer.handle))
	o := c.area(48)
	f2 = c.keep(o)
	import15(f0, f1, f2)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &Blob{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/blob@0.1.0 get
func import16(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Blob returns the binding of this name, which must be of stile:capability/blob.
func (r *Env) Blob(name string) (out *BlobStore, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	o := c.area(48)
	f3 = c.keep(o)
	import16(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BlobStore{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/blob@0.1.0 put
func import17(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// PutBlob gives a binding of this name to what runs with this env. The handle is gone afterwards.
func (r *Env) PutBlob(name string, store *BlobStore) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	f3 = uint32(give(&store.handle))
	o := c.area(48)
	f4 = c.keep(o)
	import17(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

// Pollable is a handle of stile:capability/poll/pollable.
type Pollable struct{ handle uint32 }

//go:wasmimport stile:capability/poll@0.1.0 [resource-drop]pollable
func dropPollable(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *Pollable) Drop() {
	if r.handle != 0 {
		dropPollable(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/poll@0.1.0 [method]pollable.ready
func import18(f0 uint32) uint32

func (r *Pollable) Ready() bool {
	c := begin()
	defer c.end()
	var f0 uint32
	f0 = uint32(r.handle)
	return import18(f0) != 0
}

//go:wasmimport stile:capability/poll@0.1.0 [method]pollable.block
func import19(f0 uint32)

func (r *Pollable) Block() {
	c := begin()
	defer c.end()
	var f0 uint32
	f0 = uint32(r.handle)
	import19(f0)
}

//go:wasmimport stile:capability/poll@0.1.0 poll
func import20(f0 uint32, f1 uint32, f2 uint32)

func Poll(pollables []*Pollable) []uint32 {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	list21 := c.elements(len(pollables), 4)
	for k, v := range pollables {
		p := unsafe.Add(list21, k*4)
		*(*uint32)(p) = v.handle
	}
	f0 = uint32(c.keep(list21))
	f1 = uint32(len(pollables))
	o := c.area(8)
	f2 = c.keep(o)
	import20(f0, f1, f2)
	return loadList(o, 4, func(p unsafe.Pointer) uint32 { return *(*uint32)(p) })
}

//go:wasmimport stile:capability/poll@0.1.0 park
func import22(f0 uint32, f1 uint32) uint32

// Announces what the guest waits for when it returns from `start` or `resume` of `stile:extension/stepwise` with none. False if
// one is ready already or the call is not made in steps: the guest then waits in `poll`. It traps on an empty list.
func Park(pollables []*Pollable) bool {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	list23 := c.elements(len(pollables), 4)
	for k, v := range pollables {
		p := unsafe.Add(list23, k*4)
		*(*uint32)(p) = v.handle
	}
	f0 = uint32(c.keep(list23))
	f1 = uint32(len(pollables))
	return import22(f0, f1) != 0
}

type BrowserPage struct {
	URL    string
	Title  string
	Status uint16
}

func storeBrowserPage(c *call, p unsafe.Pointer, v BrowserPage) {
	c.storeString(p, v.URL)
	c.storeString(unsafe.Add(p, 8), v.Title)
	*(*uint16)(unsafe.Add(p, 16)) = v.Status
}

func loadBrowserPage(p unsafe.Pointer) BrowserPage {
	return BrowserPage{
		URL:    loadString(p),
		Title:  loadString(unsafe.Add(p, 8)),
		Status: *(*uint16)(unsafe.Add(p, 16)),
	}
}

// An element that can be seen, a text that can be seen, or a URL, in which `*` stands for any characters.
type BrowserAwaited interface{ isBrowserAwaited() }

type BrowserAwaitedSelector struct{ Value string }

func (BrowserAwaitedSelector) isBrowserAwaited() {}

type BrowserAwaitedText struct{ Value string }

func (BrowserAwaitedText) isBrowserAwaited() {}

type BrowserAwaitedURL struct{ Value string }

func (BrowserAwaitedURL) isBrowserAwaited() {}

func storeBrowserAwaited(c *call, p unsafe.Pointer, v BrowserAwaited) {
	switch v := v.(type) {
	case nil:
		panic("a BrowserAwaited is nil")
	case BrowserAwaitedSelector:
		*(*uint8)(p) = 0
		c.storeString(unsafe.Add(p, 4), v.Value)
	case BrowserAwaitedText:
		*(*uint8)(p) = 1
		c.storeString(unsafe.Add(p, 4), v.Value)
	case BrowserAwaitedURL:
		*(*uint8)(p) = 2
		c.storeString(unsafe.Add(p, 4), v.Value)
	}
}

func loadBrowserAwaited(p unsafe.Pointer) BrowserAwaited {
	switch *(*uint8)(p) {
	case 0:
		return BrowserAwaitedSelector{loadString(unsafe.Add(p, 4))}
	case 1:
		return BrowserAwaitedText{loadString(unsafe.Add(p, 4))}
	case 2:
		return BrowserAwaitedURL{loadString(unsafe.Add(p, 4))}
	}
	panic("unknown case")
}

type BrowserOutcome interface{ isBrowserOutcome() }

type BrowserOutcomeNothing struct{}

func (BrowserOutcomeNothing) isBrowserOutcome() {}

type BrowserOutcomePage struct{ Value BrowserPage }

func (BrowserOutcomePage) isBrowserOutcome() {}

type BrowserOutcomeText struct{ Value string }

func (BrowserOutcomeText) isBrowserOutcome() {}

type BrowserOutcomeBlob struct{ Value *Blob }

func (BrowserOutcomeBlob) isBrowserOutcome() {}

func storeBrowserOutcome(c *call, p unsafe.Pointer, v BrowserOutcome) {
	switch v := v.(type) {
	case nil:
		panic("a BrowserOutcome is nil")
	case BrowserOutcomeNothing:
		*(*uint8)(p) = 0
	case BrowserOutcomePage:
		*(*uint8)(p) = 1
		storeBrowserPage(c, unsafe.Add(p, 4), v.Value)
	case BrowserOutcomeText:
		*(*uint8)(p) = 2
		c.storeString(unsafe.Add(p, 4), v.Value)
	case BrowserOutcomeBlob:
		*(*uint8)(p) = 3
		*(*uint32)(unsafe.Add(p, 4)) = give(&v.Value.handle)
	}
}

func loadBrowserOutcome(p unsafe.Pointer) BrowserOutcome {
	switch *(*uint8)(p) {
	case 0:
		return BrowserOutcomeNothing{}
	case 1:
		return BrowserOutcomePage{loadBrowserPage(unsafe.Add(p, 4))}
	case 2:
		return BrowserOutcomeText{loadString(unsafe.Add(p, 4))}
	case 3:
		return BrowserOutcomeBlob{&Blob{*(*uint32)(unsafe.Add(p, 4))}}
	}
	panic("unknown case")
}

// Actions of one session run one after the other. Each takes at most 30 s. Selectors are CSS, and mean the first such element that can
// be seen. Without a selector, a function means the whole page.
type BrowserSession struct{ handle uint32 }

//go:wasmimport stile:capability/browser@0.1.0 [resource-drop]session
func dropBrowserSession(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *BrowserSession) Drop() {
	if r.handle != 0 {
		dropBrowserSession(r.handle)
		r.handle = 0
	}
}

// BrowserPending is a handle of stile:capability/browser/pending.
type BrowserPending struct{ handle uint32 }

//go:wasmimport stile:capability/browser@0.1.0 [resource-drop]pending
func dropBrowserPending(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *BrowserPending) Drop() {
	if r.handle != 0 {
		dropBrowserPending(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/browser@0.1.0 [method]session.open
func import24(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Opens a page and waits until it has loaded. The outcome is a page, as that of `click`, `press` and `wait-for`.
func (r *BrowserSession) Open(theURL string) (out *BrowserPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(theURL))
	f2 = uint32(len(theURL))
	o := c.area(48)
	f3 = c.keep(o)
	import24(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 [method]session.click
func import25(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

func (r *BrowserSession) Click(selector string) (out *BrowserPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(selector))
	f2 = uint32(len(selector))
	o := c.area(48)
	f3 = c.keep(o)
	import25(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 [method]session.fill
func import26(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32)

// Sets a field, an option or, with "true" or "false", a checkbox.
func (r *BrowserSession) Fill(selector string, text string) (out *BrowserPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(selector))
	f2 = uint32(len(selector))
	f3 = uint32(c.text(text))
	f4 = uint32(len(text))
	o := c.area(48)
	f5 = c.keep(o)
	import26(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 [method]session.press
func import27(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Presses a key or a combination such as "Enter" or "Control+A".
func (r *BrowserSession) Press(key string) (out *BrowserPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(key))
	f2 = uint32(len(key))
	o := c.area(48)
	f3 = c.keep(o)
	import27(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 [method]session.wait-for
func import28(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

func (r *BrowserSession) WaitFor(what BrowserAwaited) (out *BrowserPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	switch v := what.(type) {
	case nil:
		panic("a BrowserAwaited is nil")
	case BrowserAwaitedSelector:
		f1 = uint32(0)
		f2 = uint32(c.text(v.Value))
		f3 = uint32(len(v.Value))
	case BrowserAwaitedText:
		f1 = uint32(1)
		f2 = uint32(c.text(v.Value))
		f3 = uint32(len(v.Value))
	case BrowserAwaitedURL:
		f1 = uint32(2)
		f2 = uint32(c.text(v.Value))
		f3 = uint32(len(v.Value))
	}
	o := c.area(48)
	f4 = c.keep(o)
	import28(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 [method]session.text
func import29(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// Text that can be seen, at most 1 MiB.
func (r *BrowserSession) Text(selector *string) (out *BrowserPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	if selector != nil {
		f1 = uint32(1)
		f2 = uint32(c.text((*selector)))
		f3 = uint32(len((*selector)))
	}
	o := c.area(48)
	f4 = c.keep(o)
	import29(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 [method]session.html
func import30(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// At most 4 MiB.
func (r *BrowserSession) HTML(selector *string) (out *BrowserPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	if selector != nil {
		f1 = uint32(1)
		f2 = uint32(c.text((*selector)))
		f3 = uint32(len((*selector)))
	}
	o := c.area(48)
	f4 = c.keep(o)
	import30(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 [method]session.markdown
func import31(f0 uint32, f1 uint32)

// The page as Markdown, cut at 256 KiB.
func (r *BrowserSession) Markdown() (out *BrowserPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import31(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 [method]session.evaluate
func import32(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32)

// Runs JavaScript in the page: an expression, a function to call, or the body of one. `arguments` is a list, and the outcome a value,
// as JSON of at most 1 MiB. An empty text is no value.
func (r *BrowserSession) Evaluate(code string, arguments string) (out *BrowserPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(code))
	f2 = uint32(len(code))
	f3 = uint32(c.text(arguments))
	f4 = uint32(len(arguments))
	o := c.area(48)
	f5 = c.keep(o)
	import32(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 [method]session.screenshot
func import33(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32)

// A PNG.
func (r *BrowserSession) Screenshot(fullPage bool, selector *string) (out *BrowserPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	if fullPage {
		f1 = uint32(1)
	}
	if selector != nil {
		f2 = uint32(1)
		f3 = uint32(c.text((*selector)))
		f4 = uint32(len((*selector)))
	}
	o := c.area(48)
	f5 = c.keep(o)
	import33(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 [method]session.pdf
func import34(f0 uint32, f1 uint32)

func (r *BrowserSession) PDF() (out *BrowserPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import34(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 [method]session.download
func import35(f0 uint32, f1 uint32)

// The newest file that the page has downloaded and that was not asked for yet, once it has arrived; nothing if there is none.
func (r *BrowserSession) Download() (out *BrowserPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import35(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 [method]session.leave
func import36(f0 uint32, f1 uint32)

// Drops the page, with its cookies and all else that it has kept.
func (r *BrowserSession) Leave() (out *BrowserPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import36(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 [method]pending.subscribe
func import37(f0 uint32) uint32

// Ready when the action has ended.
func (r *BrowserPending) Subscribe() *Pollable {
	c := begin()
	defer c.end()
	var f0 uint32
	f0 = uint32(r.handle)
	return &Pollable{import37(f0)}
}

//go:wasmimport stile:capability/browser@0.1.0 [method]pending.take
func import38(f0 uint32, f1 uint32)

// Can be taken once.
func (r *BrowserPending) Take() (out BrowserOutcome, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import38(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadBrowserOutcome(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/browser@0.1.0 get
func import39(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Browser returns the binding of this name, which must be of stile:capability/browser.
func (r *Env) Browser(name string) (out *BrowserSession, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	o := c.area(48)
	f3 = c.keep(o)
	import39(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &BrowserSession{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/browser@0.1.0 put
func import40(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// PutBrowser gives a binding of this name to what runs with this env. The handle is gone afterwards.
func (r *Env) PutBrowser(name string, session *BrowserSession) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	f3 = uint32(give(&session.handle))
	o := c.area(48)
	f4 = c.keep(o)
	import40(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

// Clock is a handle of stile:capability/clock/clock.
type Clock struct{ handle uint32 }

//go:wasmimport stile:capability/clock@0.1.0 [resource-drop]clock
func dropClock(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *Clock) Drop() {
	if r.handle != 0 {
		dropClock(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/clock@0.1.0 [method]clock.now
func import41(f0 uint32) uint64

// Milliseconds since 1970-01-01T00:00:00Z.
func (r *Clock) Now() uint64 {
	c := begin()
	defer c.end()
	var f0 uint32
	f0 = uint32(r.handle)
	return uint64(import41(f0))
}

//go:wasmimport stile:capability/clock@0.1.0 [method]clock.monotonic
func import42(f0 uint32) uint64

// Nanoseconds from an arbitrary start.
func (r *Clock) Monotonic() uint64 {
	c := begin()
	defer c.end()
	var f0 uint32
	f0 = uint32(r.handle)
	return uint64(import42(f0))
}

//go:wasmimport stile:capability/clock@0.1.0 [method]clock.subscribe
func import43(f0 uint32, f1 uint64) uint32

func (r *Clock) Subscribe(nanoseconds uint64) *Pollable {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint64
	f0 = uint32(r.handle)
	f1 = uint64(nanoseconds)
	return &Pollable{import43(f0, f1)}
}

//go:wasmimport stile:capability/clock@0.1.0 get
func import44(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Clock returns the binding of this name, which must be of stile:capability/clock.
func (r *Env) Clock(name string) (out *Clock, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	o := c.area(48)
	f3 = c.keep(o)
	import44(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &Clock{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/clock@0.1.0 put
func import45(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// PutClock gives a binding of this name to what runs with this env. The handle is gone afterwards.
func (r *Env) PutClock(name string, clock *Clock) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	f3 = uint32(give(&clock.handle))
	o := c.area(48)
	f4 = c.keep(o)
	import45(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

type CodeLevel uint8

const (
	CodeLevelTrace CodeLevel = iota
	CodeLevelDebug
	CodeLevelInfo
	CodeLevelWarn
	CodeLevelError
)

type CodeLine struct {
	Level CodeLevel
	Text  string
}

func storeCodeLine(c *call, p unsafe.Pointer, v CodeLine) {
	*(*uint8)(p) = uint8(v.Level)
	c.storeString(unsafe.Add(p, 4), v.Text)
}

func loadCodeLine(p unsafe.Pointer) CodeLine {
	return CodeLine{
		Level: CodeLevel(*(*uint8)(p)),
		Text:  loadString(unsafe.Add(p, 4)),
	}
}

// What the code threw. The lines of the stack are those of the code.
type CodeFailure struct {
	Name    string
	Message string
	Stack   string
}

func storeCodeFailure(c *call, p unsafe.Pointer, v CodeFailure) {
	c.storeString(p, v.Name)
	c.storeString(unsafe.Add(p, 8), v.Message)
	c.storeString(unsafe.Add(p, 16), v.Stack)
}

func loadCodeFailure(p unsafe.Pointer) CodeFailure {
	return CodeFailure{
		Name:    loadString(p),
		Message: loadString(unsafe.Add(p, 8)),
		Stack:   loadString(unsafe.Add(p, 16)),
	}
}

// CodeRunner is a handle of stile:capability/code/runner.
type CodeRunner struct{ handle uint32 }

//go:wasmimport stile:capability/code@0.1.0 [resource-drop]runner
func dropCodeRunner(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *CodeRunner) Drop() {
	if r.handle != 0 {
		dropCodeRunner(r.handle)
		r.handle = 0
	}
}

// CodePending is a handle of stile:capability/code/pending.
type CodePending struct{ handle uint32 }

//go:wasmimport stile:capability/code@0.1.0 [resource-drop]pending
func dropCodePending(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *CodePending) Drop() {
	if r.handle != 0 {
		dropCodePending(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/code@0.1.0 [method]runner.start
func import46(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32, f6 uint32, f7 uint32, f8 uint32)

// Starts code and returns at once. `code` is the body of an async function with the parameters input, env and tools, in the language
// that the ending of `name` says. `input` is JSON. `env` is what the code has, besides a clock, random numbers and a console.
func (r *CodeRunner) Start(code string, name string, input string, env *Env) (out *CodePending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	var f6 uint32
	var f7 uint32
	var f8 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(code))
	f2 = uint32(len(code))
	f3 = uint32(c.text(name))
	f4 = uint32(len(name))
	f5 = uint32(c.text(input))
	f6 = uint32(len(input))
	f7 = uint32(give(&env.handle))
	o := c.area(48)
	f8 = c.keep(o)
	import46(f0, f1, f2, f3, f4, f5, f6, f7, f8)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &CodePending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/code@0.1.0 [method]pending.subscribe
func import47(f0 uint32) uint32

func (r *CodePending) Subscribe() *Pollable {
	c := begin()
	defer c.end()
	var f0 uint32
	f0 = uint32(r.handle)
	return &Pollable{import47(f0)}
}

//go:wasmimport stile:capability/code@0.1.0 [method]pending.take
func import48(f0 uint32, f1 uint32)

// What the code returned, as JSON.
func (r *CodePending) Take() (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import48(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/code@0.1.0 [method]pending.thrown
func import49(f0 uint32, f1 uint32)

// What the code threw, if that is why `take` fails.
func (r *CodePending) Thrown() (out *CodeFailure, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import49(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadOption(unsafe.Add(o, 8), 4, func(p unsafe.Pointer) CodeFailure { return loadCodeFailure(p) })
	return
}

//go:wasmimport stile:capability/code@0.1.0 [method]pending.log
func import50(f0 uint32, f1 uint32)

// What the code has logged since the last call: at most 500 lines in all, of 16,384 bytes together.
func (r *CodePending) Log() (out []CodeLine, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import50(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadList(unsafe.Add(o, 8), 12, func(p unsafe.Pointer) CodeLine { return loadCodeLine(p) })
	return
}

//go:wasmimport stile:capability/code@0.1.0 get
func import51(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Code returns the binding of this name, which must be of stile:capability/code.
func (r *Env) Code(name string) (out *CodeRunner, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	o := c.area(48)
	f3 = c.keep(o)
	import51(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &CodeRunner{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/code@0.1.0 put
func import52(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// PutCode gives a binding of this name to what runs with this env. The handle is gone afterwards.
func (r *Env) PutCode(name string, runner *CodeRunner) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	f3 = uint32(give(&runner.handle))
	o := c.area(48)
	f4 = c.keep(o)
	import52(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

type ConsoleLevel uint8

const (
	ConsoleLevelTrace ConsoleLevel = iota
	ConsoleLevelDebug
	ConsoleLevelInfo
	ConsoleLevelWarn
	ConsoleLevelError
)

// Console is a handle of stile:capability/console/console.
type Console struct{ handle uint32 }

//go:wasmimport stile:capability/console@0.1.0 [resource-drop]console
func dropConsole(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *Console) Drop() {
	if r.handle != 0 {
		dropConsole(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/console@0.1.0 [method]console.log
func import53(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Text beyond the call's log limit is dropped, and the log says so.
func (r *Console) Log(level ConsoleLevel, message string) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(level)
	f2 = uint32(c.text(message))
	f3 = uint32(len(message))
	import53(f0, f1, f2, f3)
}

//go:wasmimport stile:capability/console@0.1.0 [method]console.progress
func import54(f0 uint32, f1 float64, f2 uint32, f3 float64, f4 uint32, f5 uint32)

// Says how much of the call's work is done, of a total if that is known. Updates beyond ten a second may be dropped, and a message is
// one line of at most 200 bytes.
func (r *Console) Progress(done float64, total *float64, message string) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 float64
	var f2 uint32
	var f3 float64
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = float64(done)
	if total != nil {
		f2 = uint32(1)
		f3 = float64((*total))
	}
	f4 = uint32(c.text(message))
	f5 = uint32(len(message))
	import54(f0, f1, f2, f3, f4, f5)
}

//go:wasmimport stile:capability/console@0.1.0 get
func import55(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Console returns the binding of this name, which must be of stile:capability/console.
func (r *Env) Console(name string) (out *Console, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	o := c.area(48)
	f3 = c.keep(o)
	import55(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &Console{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/console@0.1.0 put
func import56(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// PutConsole gives a binding of this name to what runs with this env. The handle is gone afterwards.
func (r *Env) PutConsole(name string, console *Console) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	f3 = uint32(give(&console.handle))
	o := c.area(48)
	f4 = c.keep(o)
	import56(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

type HTTPContent interface{ isHTTPContent() }

type HTTPContentNone struct{}

func (HTTPContentNone) isHTTPContent() {}

type HTTPContentText struct{ Value string }

func (HTTPContentText) isHTTPContent() {}

type HTTPContentBytes struct{ Value []byte }

func (HTTPContentBytes) isHTTPContent() {}

type HTTPContentBlob struct{ Value *Blob }

func (HTTPContentBlob) isHTTPContent() {}

func storeHTTPContent(c *call, p unsafe.Pointer, v HTTPContent) {
	switch v := v.(type) {
	case nil:
		panic("a HTTPContent is nil")
	case HTTPContentNone:
		*(*uint8)(p) = 0
	case HTTPContentText:
		*(*uint8)(p) = 1
		c.storeString(unsafe.Add(p, 4), v.Value)
	case HTTPContentBytes:
		*(*uint8)(p) = 2
		c.storeBytes(unsafe.Add(p, 4), v.Value)
	case HTTPContentBlob:
		*(*uint8)(p) = 3
		*(*uint32)(unsafe.Add(p, 4)) = give(&v.Value.handle)
	}
}

func loadHTTPContent(p unsafe.Pointer) HTTPContent {
	switch *(*uint8)(p) {
	case 0:
		return HTTPContentNone{}
	case 1:
		return HTTPContentText{loadString(unsafe.Add(p, 4))}
	case 2:
		return HTTPContentBytes{loadBytes(unsafe.Add(p, 4))}
	case 3:
		return HTTPContentBlob{&Blob{*(*uint32)(unsafe.Add(p, 4))}}
	}
	panic("unknown case")
}

type HTTPRedirect uint8

const (
	HTTPRedirectFollow HTTPRedirect = iota
	HTTPRedirectManual
	HTTPRedirectError
)

type HTTPRequest struct {
	Method   string
	URL      string
	Headers  []Header
	Content  HTTPContent
	Redirect HTTPRedirect
	// Milliseconds for the whole exchange. The grant's limit still applies.
	Timeout *uint32
}

func storeHTTPRequest(c *call, p unsafe.Pointer, v HTTPRequest) {
	c.storeString(p, v.Method)
	c.storeString(unsafe.Add(p, 8), v.URL)
	list57 := c.elements(len(v.Headers), 16)
	for k, v := range v.Headers {
		p := unsafe.Add(list57, k*16)
		storeHeader(c, p, v)
	}
	c.storePair(unsafe.Add(p, 16), list57, len(v.Headers))
	storeHTTPContent(c, unsafe.Add(p, 24), v.Content)
	*(*uint8)(unsafe.Add(p, 36)) = uint8(v.Redirect)
	if v.Timeout != nil {
		*(*uint8)(unsafe.Add(p, 40)) = 1
		*(*uint32)(unsafe.Add(unsafe.Add(p, 40), 4)) = *v.Timeout
	}
}

func loadHTTPRequest(p unsafe.Pointer) HTTPRequest {
	return HTTPRequest{
		Method:   loadString(p),
		URL:      loadString(unsafe.Add(p, 8)),
		Headers:  loadList(unsafe.Add(p, 16), 16, func(p unsafe.Pointer) Header { return loadHeader(p) }),
		Content:  loadHTTPContent(unsafe.Add(p, 24)),
		Redirect: HTTPRedirect(*(*uint8)(unsafe.Add(p, 36))),
		Timeout:  loadOption(unsafe.Add(p, 40), 4, func(p unsafe.Pointer) uint32 { return *(*uint32)(p) }),
	}
}

type HTTPHead struct {
	Status     uint16
	URL        string
	Redirected bool
	Headers    []Header
}

func storeHTTPHead(c *call, p unsafe.Pointer, v HTTPHead) {
	*(*uint16)(p) = v.Status
	c.storeString(unsafe.Add(p, 4), v.URL)
	*(*bool)(unsafe.Add(p, 12)) = v.Redirected
	list58 := c.elements(len(v.Headers), 16)
	for k, v := range v.Headers {
		p := unsafe.Add(list58, k*16)
		storeHeader(c, p, v)
	}
	c.storePair(unsafe.Add(p, 16), list58, len(v.Headers))
}

func loadHTTPHead(p unsafe.Pointer) HTTPHead {
	return HTTPHead{
		Status:     *(*uint16)(p),
		URL:        loadString(unsafe.Add(p, 4)),
		Redirected: *(*bool)(unsafe.Add(p, 12)),
		Headers:    loadList(unsafe.Add(p, 16), 16, func(p unsafe.Pointer) Header { return loadHeader(p) }),
	}
}

type HTTPRule struct {
	Scheme  string
	Host    string
	Port    *uint16
	Methods []string
	Path    string
	Headers []string
}

func storeHTTPRule(c *call, p unsafe.Pointer, v HTTPRule) {
	c.storeString(p, v.Scheme)
	c.storeString(unsafe.Add(p, 8), v.Host)
	if v.Port != nil {
		*(*uint8)(unsafe.Add(p, 16)) = 1
		*(*uint16)(unsafe.Add(unsafe.Add(p, 16), 2)) = *v.Port
	}
	list59 := c.elements(len(v.Methods), 8)
	for k, v := range v.Methods {
		p := unsafe.Add(list59, k*8)
		c.storeString(p, v)
	}
	c.storePair(unsafe.Add(p, 20), list59, len(v.Methods))
	c.storeString(unsafe.Add(p, 28), v.Path)
	list60 := c.elements(len(v.Headers), 8)
	for k, v := range v.Headers {
		p := unsafe.Add(list60, k*8)
		c.storeString(p, v)
	}
	c.storePair(unsafe.Add(p, 36), list60, len(v.Headers))
}

func loadHTTPRule(p unsafe.Pointer) HTTPRule {
	return HTTPRule{
		Scheme:  loadString(p),
		Host:    loadString(unsafe.Add(p, 8)),
		Port:    loadOption(unsafe.Add(p, 16), 2, func(p unsafe.Pointer) uint16 { return *(*uint16)(p) }),
		Methods: loadList(unsafe.Add(p, 20), 8, func(p unsafe.Pointer) string { return loadString(p) }),
		Path:    loadString(unsafe.Add(p, 28)),
		Headers: loadList(unsafe.Add(p, 36), 8, func(p unsafe.Pointer) string { return loadString(p) }),
	}
}

// How far an exchange has progressed.
type HTTPStage interface{ isHTTPStage() }

type HTTPStageHead struct{}

func (HTTPStageHead) isHTTPStage() {}

// More than this many bytes of the body have arrived, or the body has ended.
type HTTPStageBody struct{ Value uint64 }

func (HTTPStageBody) isHTTPStage() {}

// The whole body has arrived.
type HTTPStageWhole struct{}

func (HTTPStageWhole) isHTTPStage() {}

func storeHTTPStage(c *call, p unsafe.Pointer, v HTTPStage) {
	switch v := v.(type) {
	case nil:
		panic("a HTTPStage is nil")
	case HTTPStageHead:
		*(*uint8)(p) = 0
	case HTTPStageBody:
		*(*uint8)(p) = 1
		*(*uint64)(unsafe.Add(p, 8)) = v.Value
	case HTTPStageWhole:
		*(*uint8)(p) = 2
	}
}

func loadHTTPStage(p unsafe.Pointer) HTTPStage {
	switch *(*uint8)(p) {
	case 0:
		return HTTPStageHead{}
	case 1:
		return HTTPStageBody{*(*uint64)(unsafe.Add(p, 8))}
	case 2:
		return HTTPStageWhole{}
	}
	panic("unknown case")
}

type HTTPPart struct {
	Offset uint64
	Len    uint32
}

func storeHTTPPart(c *call, p unsafe.Pointer, v HTTPPart) {
	*(*uint64)(p) = v.Offset
	*(*uint32)(unsafe.Add(p, 8)) = v.Len
}

func loadHTTPPart(p unsafe.Pointer) HTTPPart {
	return HTTPPart{
		Offset: *(*uint64)(p),
		Len:    *(*uint32)(unsafe.Add(p, 8)),
	}
}

// HTTPClient is a handle of stile:capability/http/client.
type HTTPClient struct{ handle uint32 }

//go:wasmimport stile:capability/http@0.1.0 [resource-drop]client
func dropHTTPClient(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *HTTPClient) Drop() {
	if r.handle != 0 {
		dropHTTPClient(r.handle)
		r.handle = 0
	}
}

// HTTPExchange is a handle of stile:capability/http/exchange.
type HTTPExchange struct{ handle uint32 }

//go:wasmimport stile:capability/http@0.1.0 [resource-drop]exchange
func dropHTTPExchange(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *HTTPExchange) Drop() {
	if r.handle != 0 {
		dropHTTPExchange(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/http@0.1.0 [method]client.start
func import61(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32, f6 uint32, f7 uint32, f8 uint32, f9 uint32, f10 uint32, f11 uint32, f12 uint32, f13 uint32)

// Starts a request and returns at once. A denial is returned here. A request has at most 100 headers, and at most 262,144
// bytes outside a blob.
func (r *HTTPClient) Start(request HTTPRequest) (out *HTTPExchange, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	var f6 uint32
	var f7 uint32
	var f8 uint32
	var f9 uint32
	var f10 uint32
	var f11 uint32
	var f12 uint32
	var f13 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(request.Method))
	f2 = uint32(len(request.Method))
	f3 = uint32(c.text(request.URL))
	f4 = uint32(len(request.URL))
	list62 := c.elements(len(request.Headers), 16)
	for k, v := range request.Headers {
		p := unsafe.Add(list62, k*16)
		storeHeader(c, p, v)
	}
	f5 = uint32(c.keep(list62))
	f6 = uint32(len(request.Headers))
	switch v := request.Content.(type) {
	case nil:
		panic("a HTTPContent is nil")
	case HTTPContentNone:
		f7 = uint32(0)
		_ = v
	case HTTPContentText:
		f7 = uint32(1)
		f8 = uint32(c.text(v.Value))
		f9 = uint32(len(v.Value))
	case HTTPContentBytes:
		f7 = uint32(2)
		f8 = uint32(c.keep(unsafe.Pointer(unsafe.SliceData(v.Value))))
		f9 = uint32(len(v.Value))
	case HTTPContentBlob:
		f7 = uint32(3)
		f8 = uint32(give(&v.Value.handle))
	}
	f10 = uint32(request.Redirect)
	if request.Timeout != nil {
		f11 = uint32(1)
		f12 = uint32((*request.Timeout))
	}
	o := c.area(48)
	f13 = c.keep(o)
	import61(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &HTTPExchange{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/http@0.1.0 [method]client.narrow
func import63(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// A client that allows only what both this one and `rules` allow. At most 256 rules, with at most 32 methods and 64 headers each.
func (r *HTTPClient) Narrow(rules []HTTPRule) (out *HTTPClient, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	list64 := c.elements(len(rules), 44)
	for k, v := range rules {
		p := unsafe.Add(list64, k*44)
		storeHTTPRule(c, p, v)
	}
	f1 = uint32(c.keep(list64))
	f2 = uint32(len(rules))
	o := c.area(48)
	f3 = c.keep(o)
	import63(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &HTTPClient{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/http@0.1.0 [method]client.rules
func import65(f0 uint32, f1 uint32)

func (r *HTTPClient) Rules() []HTTPRule {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(8)
	f1 = c.keep(o)
	import65(f0, f1)
	return loadList(o, 44, func(p unsafe.Pointer) HTTPRule { return loadHTTPRule(p) })
}

//go:wasmimport stile:capability/http@0.1.0 [method]exchange.subscribe
func import66(f0 uint32, f1 uint32, f2 uint64) uint32

// Ready when the exchange has reached this stage or has failed.
func (r *HTTPExchange) Subscribe(stage HTTPStage) *Pollable {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint64
	f0 = uint32(r.handle)
	switch v := stage.(type) {
	case nil:
		panic("a HTTPStage is nil")
	case HTTPStageHead:
		f1 = uint32(0)
		_ = v
	case HTTPStageBody:
		f1 = uint32(1)
		f2 = uint64(v.Value)
	case HTTPStageWhole:
		f1 = uint32(2)
		_ = v
	}
	return &Pollable{import66(f0, f1, f2)}
}

//go:wasmimport stile:capability/http@0.1.0 [method]exchange.head
func import67(f0 uint32, f1 uint32)

func (r *HTTPExchange) Head() (out HTTPHead, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import67(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadHTTPHead(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/http@0.1.0 [method]exchange.text
func import68(f0 uint32, f1 uint64, f2 uint32)

// The whole body.
func (r *HTTPExchange) Text(max uint64) (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint64
	var f2 uint32
	f0 = uint32(r.handle)
	f1 = uint64(max)
	o := c.area(48)
	f2 = c.keep(o)
	import68(f0, f1, f2)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/http@0.1.0 [method]exchange.blob
func import69(f0 uint32, f1 uint32, f2 uint64, f3 uint32, f4 uint32)

// Without a part: the whole body, which can be taken once. With a part: the bytes that have arrived from its offset on, at
// most 262,144. There is at least one unless the body has ended.
func (r *HTTPExchange) Blob(part *HTTPPart) (out *Blob, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint64
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	if part != nil {
		f1 = uint32(1)
		f2 = uint64((*part).Offset)
		f3 = uint32((*part).Len)
	}
	o := c.area(48)
	f4 = c.keep(o)
	import69(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &Blob{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/http@0.1.0 get
func import70(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// HTTP returns the binding of this name, which must be of stile:capability/http.
func (r *Env) HTTP(name string) (out *HTTPClient, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	o := c.area(48)
	f3 = c.keep(o)
	import70(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &HTTPClient{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/http@0.1.0 put
func import71(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// PutHTTP gives a binding of this name to what runs with this env. The handle is gone afterwards.
func (r *Env) PutHTTP(name string, client *HTTPClient) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	f3 = uint32(give(&client.handle))
	o := c.area(48)
	f4 = c.keep(o)
	import71(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

type KVEntry struct {
	Key   string
	Value string
}

func storeKVEntry(c *call, p unsafe.Pointer, v KVEntry) {
	c.storeString(p, v.Key)
	c.storeString(unsafe.Add(p, 8), v.Value)
}

func loadKVEntry(p unsafe.Pointer) KVEntry {
	return KVEntry{
		Key:   loadString(p),
		Value: loadString(unsafe.Add(p, 8)),
	}
}

// `cursor` is set if more entries follow.
type KVPage struct {
	Entries []KVEntry
	Cursor  *string
}

func storeKVPage(c *call, p unsafe.Pointer, v KVPage) {
	list72 := c.elements(len(v.Entries), 16)
	for k, v := range v.Entries {
		p := unsafe.Add(list72, k*16)
		storeKVEntry(c, p, v)
	}
	c.storePair(p, list72, len(v.Entries))
	if v.Cursor != nil {
		*(*uint8)(unsafe.Add(p, 8)) = 1
		c.storeString(unsafe.Add(unsafe.Add(p, 8), 4), *v.Cursor)
	}
}

func loadKVPage(p unsafe.Pointer) KVPage {
	return KVPage{
		Entries: loadList(p, 16, func(p unsafe.Pointer) KVEntry { return loadKVEntry(p) }),
		Cursor:  loadOption(unsafe.Add(p, 8), 4, func(p unsafe.Pointer) string { return loadString(p) }),
	}
}

// KVBucket is a handle of stile:capability/kv/bucket.
type KVBucket struct{ handle uint32 }

//go:wasmimport stile:capability/kv@0.1.0 [resource-drop]bucket
func dropKVBucket(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *KVBucket) Drop() {
	if r.handle != 0 {
		dropKVBucket(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/kv@0.1.0 [method]bucket.get
func import73(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

func (r *KVBucket) Get(key string) (out *string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(key))
	f2 = uint32(len(key))
	o := c.area(48)
	f3 = c.keep(o)
	import73(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadOption(unsafe.Add(o, 8), 4, func(p unsafe.Pointer) string { return loadString(p) })
	return
}

//go:wasmimport stile:capability/kv@0.1.0 [method]bucket.set
func import74(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32)

func (r *KVBucket) Set(key string, value string) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(key))
	f2 = uint32(len(key))
	f3 = uint32(c.text(value))
	f4 = uint32(len(value))
	o := c.area(48)
	f5 = c.keep(o)
	import74(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/kv@0.1.0 [method]bucket.delete
func import75(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Returns whether the key existed.
func (r *KVBucket) Delete(key string) (out bool, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(key))
	f2 = uint32(len(key))
	o := c.area(48)
	f3 = c.keep(o)
	import75(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = *(*bool)(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/kv@0.1.0 [method]bucket.list
func import76(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32, f6 uint32, f7 uint32)

// Entries whose key starts with `prefix`, in byte order, at most 1,000 a page.
func (r *KVBucket) List(prefix string, limit uint32, cursor *string) (out KVPage, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	var f6 uint32
	var f7 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(prefix))
	f2 = uint32(len(prefix))
	f3 = uint32(limit)
	if cursor != nil {
		f4 = uint32(1)
		f5 = uint32(c.text((*cursor)))
		f6 = uint32(len((*cursor)))
	}
	o := c.area(48)
	f7 = c.keep(o)
	import76(f0, f1, f2, f3, f4, f5, f6, f7)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadKVPage(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/kv@0.1.0 [method]bucket.increment
func import77(f0 uint32, f1 uint32, f2 uint32, f3 uint64, f4 uint32)

// Adds to a decimal integer, which is 0 when absent, and returns the sum.
func (r *KVBucket) Increment(key string, delta int64) (out int64, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint64
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(key))
	f2 = uint32(len(key))
	f3 = uint64(delta)
	o := c.area(48)
	f4 = c.keep(o)
	import77(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = *(*int64)(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/kv@0.1.0 [method]bucket.compare-and-set
func import78(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32, f6 uint32, f7 uint32, f8 uint32, f9 uint32)

// Sets `value` (none: deletes the key) if the current value is `expected` (none: no such key). Returns whether it did.
func (r *KVBucket) CompareAndSet(key string, expected *string, value *string) (out bool, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	var f6 uint32
	var f7 uint32
	var f8 uint32
	var f9 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(key))
	f2 = uint32(len(key))
	if expected != nil {
		f3 = uint32(1)
		f4 = uint32(c.text((*expected)))
		f5 = uint32(len((*expected)))
	}
	if value != nil {
		f6 = uint32(1)
		f7 = uint32(c.text((*value)))
		f8 = uint32(len((*value)))
	}
	o := c.area(48)
	f9 = c.keep(o)
	import78(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = *(*bool)(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/kv@0.1.0 get
func import79(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// KV returns the binding of this name, which must be of stile:capability/kv.
func (r *Env) KV(name string) (out *KVBucket, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	o := c.area(48)
	f3 = c.keep(o)
	import79(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &KVBucket{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/kv@0.1.0 put
func import80(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// PutKV gives a binding of this name to what runs with this env. The handle is gone afterwards.
func (r *Env) PutKV(name string, bucket *KVBucket) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	f3 = uint32(give(&bucket.handle))
	o := c.area(48)
	f4 = c.keep(o)
	import80(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

// Random is a handle of stile:capability/random/random.
type Random struct{ handle uint32 }

//go:wasmimport stile:capability/random@0.1.0 [resource-drop]random
func dropRandom(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *Random) Drop() {
	if r.handle != 0 {
		dropRandom(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/random@0.1.0 [method]random.u64
func import81(f0 uint32) uint64

func (r *Random) U64() uint64 {
	c := begin()
	defer c.end()
	var f0 uint32
	f0 = uint32(r.handle)
	return uint64(import81(f0))
}

//go:wasmimport stile:capability/random@0.1.0 [method]random.bytes
func import82(f0 uint32, f1 uint32, f2 uint32)

// At most 65,536 bytes a call.
func (r *Random) Bytes(length uint32) (out []byte, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	f0 = uint32(r.handle)
	f1 = uint32(length)
	o := c.area(48)
	f2 = c.keep(o)
	import82(f0, f1, f2)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadBytes(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/random@0.1.0 get
func import83(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Random returns the binding of this name, which must be of stile:capability/random.
func (r *Env) Random(name string) (out *Random, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	o := c.area(48)
	f3 = c.keep(o)
	import83(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &Random{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/random@0.1.0 put
func import84(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// PutRandom gives a binding of this name to what runs with this env. The handle is gone afterwards.
func (r *Env) PutRandom(name string, random *Random) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	f3 = uint32(give(&random.handle))
	o := c.area(48)
	f4 = c.keep(o)
	import84(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

// `ready` and `running`: the run goes on. `asleep`: it waits. `done`, `failed` and `cancelled`: it has ended. `parked`: it goes on only when a
// person has it do so.
type RunsState uint8

const (
	RunsStateReady RunsState = iota
	RunsStateRunning
	RunsStateAsleep
	RunsStateDone
	RunsStateFailed
	RunsStateCancelled
	RunsStateParked
)

// `since` is when the run came into the state, and `wakes` when it goes on if it waits for a time: in milliseconds since
// 1970-01-01T00:00:00Z. `mailboxes` are those from which it waits for messages. `reason` says why it failed or is parked.
type RunsStatus struct {
	State     RunsState
	Since     uint64
	Wakes     *uint64
	Mailboxes []string
	Reason    *string
}

func storeRunsStatus(c *call, p unsafe.Pointer, v RunsStatus) {
	*(*uint8)(p) = uint8(v.State)
	*(*uint64)(unsafe.Add(p, 8)) = v.Since
	if v.Wakes != nil {
		*(*uint8)(unsafe.Add(p, 16)) = 1
		*(*uint64)(unsafe.Add(unsafe.Add(p, 16), 8)) = *v.Wakes
	}
	list85 := c.elements(len(v.Mailboxes), 8)
	for k, v := range v.Mailboxes {
		p := unsafe.Add(list85, k*8)
		c.storeString(p, v)
	}
	c.storePair(unsafe.Add(p, 32), list85, len(v.Mailboxes))
	if v.Reason != nil {
		*(*uint8)(unsafe.Add(p, 40)) = 1
		c.storeString(unsafe.Add(unsafe.Add(p, 40), 4), *v.Reason)
	}
}

func loadRunsStatus(p unsafe.Pointer) RunsStatus {
	return RunsStatus{
		State:     RunsState(*(*uint8)(p)),
		Since:     *(*uint64)(unsafe.Add(p, 8)),
		Wakes:     loadOption(unsafe.Add(p, 16), 8, func(p unsafe.Pointer) uint64 { return *(*uint64)(p) }),
		Mailboxes: loadList(unsafe.Add(p, 32), 8, func(p unsafe.Pointer) string { return loadString(p) }),
		Reason:    loadOption(unsafe.Add(p, 40), 4, func(p unsafe.Pointer) string { return loadString(p) }),
	}
}

// The run of this call. If the call is not durable, `cancelled`, `stash` and `recover` fail with `unavailable`.
type RunsControl struct{ handle uint32 }

//go:wasmimport stile:capability/runs@0.1.0 [resource-drop]control
func dropRunsControl(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *RunsControl) Drop() {
	if r.handle != 0 {
		dropRunsControl(r.handle)
		r.handle = 0
	}
}

// Keeps the call from sleeping.
type RunsAwake struct{ handle uint32 }

//go:wasmimport stile:capability/runs@0.1.0 [resource-drop]awake
func dropRunsAwake(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *RunsAwake) Drop() {
	if r.handle != 0 {
		dropRunsAwake(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/runs@0.1.0 [method]control.cancelled
func import86(f0 uint32, f1 uint32)

// Ready once somebody has asked for the end of the run. From this call on, the run is not ended at once then, but has some time for
// its own end.
func (r *RunsControl) Cancelled() (out *Pollable, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import86(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &Pollable{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/runs@0.1.0 [method]control.keep-awake
func import87(f0 uint32) uint32

// Keeps the call from sleeping until the handle is dropped.
func (r *RunsControl) KeepAwake() *RunsAwake {
	c := begin()
	defer c.end()
	var f0 uint32
	f0 = uint32(r.handle)
	return &RunsAwake{import87(f0)}
}

//go:wasmimport stile:capability/runs@0.1.0 [method]control.stash
func import88(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Keeps JSON of at most 64 KiB with the run, in place of what it kept before. Later attempts of the run have it too.
func (r *RunsControl) Stash(value string) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(value))
	f2 = uint32(len(value))
	o := c.area(48)
	f3 = c.keep(o)
	import88(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/runs@0.1.0 [method]control.recover
func import89(f0 uint32, f1 uint32)

// What the run keeps. None if it keeps nothing.
func (r *RunsControl) Recover() (out *string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import89(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadOption(unsafe.Add(o, 8), 4, func(p unsafe.Pointer) string { return loadString(p) })
	return
}

//go:wasmimport stile:capability/runs@0.1.0 [method]control.start
func import90(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32, f6 uint32, f7 uint32, f8 uint32)

// Starts a tool of another extension as a run of its own, which outlives this call, and returns its id. Among the runs of one tool that this
// extension has started, a key finds the one that it started.
func (r *RunsControl) Start(tool string, input string, key *string) (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	var f6 uint32
	var f7 uint32
	var f8 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(tool))
	f2 = uint32(len(tool))
	f3 = uint32(c.text(input))
	f4 = uint32(len(input))
	if key != nil {
		f5 = uint32(1)
		f6 = uint32(c.text((*key)))
		f7 = uint32(len((*key)))
	}
	o := c.area(48)
	f8 = c.keep(o)
	import90(f0, f1, f2, f3, f4, f5, f6, f7, f8)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/runs@0.1.0 [method]control.ended
func import91(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Ready once a run has ended that `start` returned.
func (r *RunsControl) Ended(run string) (out *Pollable, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(run))
	f2 = uint32(len(run))
	o := c.area(48)
	f3 = c.keep(o)
	import91(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &Pollable{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/runs@0.1.0 [method]control.outcome
func import92(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Waits for the result of a run that `start` returned. If the tool failed, its error.
func (r *RunsControl) Outcome(run string) (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(run))
	f2 = uint32(len(run))
	o := c.area(48)
	f3 = c.keep(o)
	import92(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/runs@0.1.0 [method]control.status
func import93(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Where a run is that `start` returned.
func (r *RunsControl) Status(run string) (out RunsStatus, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(run))
	f2 = uint32(len(run))
	o := c.area(64)
	f3 = c.keep(o)
	import93(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadRunsStatus(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/runs@0.1.0 [method]control.signal
func import94(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32, f6 uint32, f7 uint32, f8 uint32, f9 uint32, f10 uint32)

// Delivers JSON of at most 64 KiB to a mailbox of a run that `start` returned. False if the mailbox has had a message with this key.
func (r *RunsControl) Signal(run string, mailbox string, data string, key *string) (out bool, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	var f6 uint32
	var f7 uint32
	var f8 uint32
	var f9 uint32
	var f10 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(run))
	f2 = uint32(len(run))
	f3 = uint32(c.text(mailbox))
	f4 = uint32(len(mailbox))
	f5 = uint32(c.text(data))
	f6 = uint32(len(data))
	if key != nil {
		f7 = uint32(1)
		f8 = uint32(c.text((*key)))
		f9 = uint32(len((*key)))
	}
	o := c.area(48)
	f10 = c.keep(o)
	import94(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = *(*bool)(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/runs@0.1.0 [method]control.cancel
func import95(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Asks for the end of a run that `start` returned. Nothing happens if it has ended.
func (r *RunsControl) Cancel(run string) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(run))
	f2 = uint32(len(run))
	o := c.area(48)
	f3 = c.keep(o)
	import95(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/runs@0.1.0 get
func import96(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Runs returns the binding of this name, which must be of stile:capability/runs.
func (r *Env) Runs(name string) (out *RunsControl, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	o := c.area(48)
	f3 = c.keep(o)
	import96(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &RunsControl{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/runs@0.1.0 put
func import97(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// PutRuns gives a binding of this name to what runs with this env. The handle is gone afterwards.
func (r *Env) PutRuns(name string, control *RunsControl) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	f3 = uint32(give(&control.handle))
	o := c.area(48)
	f4 = c.keep(o)
	import97(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

type WorkspaceKind uint8

const (
	WorkspaceKindFile WorkspaceKind = iota
	WorkspaceKindDirectory
	WorkspaceKindLink
)

type WorkspaceStatus struct {
	Kind WorkspaceKind
	// Bytes; 0 for directories and links.
	Size uint64
	// Milliseconds since 1970-01-01T00:00:00Z.
	Modified uint64
	// Permission bits, at most 0o777.
	Mode uint32
}

func storeWorkspaceStatus(c *call, p unsafe.Pointer, v WorkspaceStatus) {
	*(*uint8)(p) = uint8(v.Kind)
	*(*uint64)(unsafe.Add(p, 8)) = v.Size
	*(*uint64)(unsafe.Add(p, 16)) = v.Modified
	*(*uint32)(unsafe.Add(p, 24)) = v.Mode
}

func loadWorkspaceStatus(p unsafe.Pointer) WorkspaceStatus {
	return WorkspaceStatus{
		Kind:     WorkspaceKind(*(*uint8)(p)),
		Size:     *(*uint64)(unsafe.Add(p, 8)),
		Modified: *(*uint64)(unsafe.Add(p, 16)),
		Mode:     *(*uint32)(unsafe.Add(p, 24)),
	}
}

type WorkspaceEntry struct {
	Name   string
	Status WorkspaceStatus
}

func storeWorkspaceEntry(c *call, p unsafe.Pointer, v WorkspaceEntry) {
	c.storeString(p, v.Name)
	storeWorkspaceStatus(c, unsafe.Add(p, 8), v.Status)
}

func loadWorkspaceEntry(p unsafe.Pointer) WorkspaceEntry {
	return WorkspaceEntry{
		Name:   loadString(p),
		Status: loadWorkspaceStatus(unsafe.Add(p, 8)),
	}
}

// `cursor` is set if more entries follow.
type WorkspacePage struct {
	Entries []WorkspaceEntry
	Cursor  *string
}

func storeWorkspacePage(c *call, p unsafe.Pointer, v WorkspacePage) {
	list98 := c.elements(len(v.Entries), 40)
	for k, v := range v.Entries {
		p := unsafe.Add(list98, k*40)
		storeWorkspaceEntry(c, p, v)
	}
	c.storePair(p, list98, len(v.Entries))
	if v.Cursor != nil {
		*(*uint8)(unsafe.Add(p, 8)) = 1
		c.storeString(unsafe.Add(unsafe.Add(p, 8), 4), *v.Cursor)
	}
}

func loadWorkspacePage(p unsafe.Pointer) WorkspacePage {
	return WorkspacePage{
		Entries: loadList(p, 40, func(p unsafe.Pointer) WorkspaceEntry { return loadWorkspaceEntry(p) }),
		Cursor:  loadOption(unsafe.Add(p, 8), 4, func(p unsafe.Pointer) string { return loadString(p) }),
	}
}

// A file at one moment. There is no text above the size that was asked for, and for bytes that are not UTF-8. `digest` is as
// `blob.digest` has it.
type WorkspaceWhole struct {
	Text   *string
	Digest string
	Size   uint64
}

func storeWorkspaceWhole(c *call, p unsafe.Pointer, v WorkspaceWhole) {
	if v.Text != nil {
		*(*uint8)(p) = 1
		c.storeString(unsafe.Add(p, 4), *v.Text)
	}
	c.storeString(unsafe.Add(p, 12), v.Digest)
	*(*uint64)(unsafe.Add(p, 24)) = v.Size
}

func loadWorkspaceWhole(p unsafe.Pointer) WorkspaceWhole {
	return WorkspaceWhole{
		Text:   loadOption(p, 4, func(p unsafe.Pointer) string { return loadString(p) }),
		Digest: loadString(unsafe.Add(p, 12)),
		Size:   *(*uint64)(unsafe.Add(p, 24)),
	}
}

type WorkspaceReplacement struct {
	Old string
	New string
}

func storeWorkspaceReplacement(c *call, p unsafe.Pointer, v WorkspaceReplacement) {
	c.storeString(p, v.Old)
	c.storeString(unsafe.Add(p, 8), v.New)
}

func loadWorkspaceReplacement(p unsafe.Pointer) WorkspaceReplacement {
	return WorkspaceReplacement{
		Old: loadString(p),
		New: loadString(unsafe.Add(p, 8)),
	}
}

// `cursor` is set if there may be more paths, even after a page without any.
type WorkspaceFound struct {
	Paths  []string
	Cursor *string
}

func storeWorkspaceFound(c *call, p unsafe.Pointer, v WorkspaceFound) {
	list99 := c.elements(len(v.Paths), 8)
	for k, v := range v.Paths {
		p := unsafe.Add(list99, k*8)
		c.storeString(p, v)
	}
	c.storePair(p, list99, len(v.Paths))
	if v.Cursor != nil {
		*(*uint8)(unsafe.Add(p, 8)) = 1
		c.storeString(unsafe.Add(unsafe.Add(p, 8), 4), *v.Cursor)
	}
}

func loadWorkspaceFound(p unsafe.Pointer) WorkspaceFound {
	return WorkspaceFound{
		Paths:  loadList(p, 8, func(p unsafe.Pointer) string { return loadString(p) }),
		Cursor: loadOption(unsafe.Add(p, 8), 4, func(p unsafe.Pointer) string { return loadString(p) }),
	}
}

type WorkspaceSearch struct {
	// Globs: a file must match one of `include`, if there are any, and none of `exclude`; at most 32 each.
	Include []string
	Exclude []string
	// Lines to return before and after each match, at most 20.
	Context uint32
}

func storeWorkspaceSearch(c *call, p unsafe.Pointer, v WorkspaceSearch) {
	list100 := c.elements(len(v.Include), 8)
	for k, v := range v.Include {
		p := unsafe.Add(list100, k*8)
		c.storeString(p, v)
	}
	c.storePair(p, list100, len(v.Include))
	list101 := c.elements(len(v.Exclude), 8)
	for k, v := range v.Exclude {
		p := unsafe.Add(list101, k*8)
		c.storeString(p, v)
	}
	c.storePair(unsafe.Add(p, 8), list101, len(v.Exclude))
	*(*uint32)(unsafe.Add(p, 16)) = v.Context
}

func loadWorkspaceSearch(p unsafe.Pointer) WorkspaceSearch {
	return WorkspaceSearch{
		Include: loadList(p, 8, func(p unsafe.Pointer) string { return loadString(p) }),
		Exclude: loadList(unsafe.Add(p, 8), 8, func(p unsafe.Pointer) string { return loadString(p) }),
		Context: *(*uint32)(unsafe.Add(p, 16)),
	}
}

type WorkspaceMatch struct {
	Path string
	// Both count from 1. `column` counts bytes.
	Line   uint32
	Column uint32
	// The line without its end. For a line over 2,000 bytes, the part that contains the match.
	Text   string
	Before []string
	After  []string
}

func storeWorkspaceMatch(c *call, p unsafe.Pointer, v WorkspaceMatch) {
	c.storeString(p, v.Path)
	*(*uint32)(unsafe.Add(p, 8)) = v.Line
	*(*uint32)(unsafe.Add(p, 12)) = v.Column
	c.storeString(unsafe.Add(p, 16), v.Text)
	list102 := c.elements(len(v.Before), 8)
	for k, v := range v.Before {
		p := unsafe.Add(list102, k*8)
		c.storeString(p, v)
	}
	c.storePair(unsafe.Add(p, 24), list102, len(v.Before))
	list103 := c.elements(len(v.After), 8)
	for k, v := range v.After {
		p := unsafe.Add(list103, k*8)
		c.storeString(p, v)
	}
	c.storePair(unsafe.Add(p, 32), list103, len(v.After))
}

func loadWorkspaceMatch(p unsafe.Pointer) WorkspaceMatch {
	return WorkspaceMatch{
		Path:   loadString(p),
		Line:   *(*uint32)(unsafe.Add(p, 8)),
		Column: *(*uint32)(unsafe.Add(p, 12)),
		Text:   loadString(unsafe.Add(p, 16)),
		Before: loadList(unsafe.Add(p, 24), 8, func(p unsafe.Pointer) string { return loadString(p) }),
		After:  loadList(unsafe.Add(p, 32), 8, func(p unsafe.Pointer) string { return loadString(p) }),
	}
}

type WorkspaceMatches struct {
	Matches []WorkspaceMatch
	// Files of this page that were not searched completely: binary files, and files with a line over 16 KiB.
	Partial uint32
	// Set if there may be more matches, even after a page without any.
	Cursor *string
}

func storeWorkspaceMatches(c *call, p unsafe.Pointer, v WorkspaceMatches) {
	list104 := c.elements(len(v.Matches), 40)
	for k, v := range v.Matches {
		p := unsafe.Add(list104, k*40)
		storeWorkspaceMatch(c, p, v)
	}
	c.storePair(p, list104, len(v.Matches))
	*(*uint32)(unsafe.Add(p, 8)) = v.Partial
	if v.Cursor != nil {
		*(*uint8)(unsafe.Add(p, 12)) = 1
		c.storeString(unsafe.Add(unsafe.Add(p, 12), 4), *v.Cursor)
	}
}

func loadWorkspaceMatches(p unsafe.Pointer) WorkspaceMatches {
	return WorkspaceMatches{
		Matches: loadList(p, 40, func(p unsafe.Pointer) WorkspaceMatch { return loadWorkspaceMatch(p) }),
		Partial: *(*uint32)(unsafe.Add(p, 8)),
		Cursor:  loadOption(unsafe.Add(p, 12), 4, func(p unsafe.Pointer) string { return loadString(p) }),
	}
}

// Earlier content of a path; `modified` is when it was written.
type WorkspaceRevision struct {
	ID       uint64
	Size     uint64
	Modified uint64
}

func storeWorkspaceRevision(c *call, p unsafe.Pointer, v WorkspaceRevision) {
	*(*uint64)(p) = v.ID
	*(*uint64)(unsafe.Add(p, 8)) = v.Size
	*(*uint64)(unsafe.Add(p, 16)) = v.Modified
}

func loadWorkspaceRevision(p unsafe.Pointer) WorkspaceRevision {
	return WorkspaceRevision{
		ID:       *(*uint64)(p),
		Size:     *(*uint64)(unsafe.Add(p, 8)),
		Modified: *(*uint64)(unsafe.Add(p, 16)),
	}
}

// `taken` is in milliseconds since 1970-01-01T00:00:00Z; `files` counts directories and links too.
type WorkspaceSnapshot struct {
	ID    uint64
	Taken uint64
	Files uint64
	Bytes uint64
}

func storeWorkspaceSnapshot(c *call, p unsafe.Pointer, v WorkspaceSnapshot) {
	*(*uint64)(p) = v.ID
	*(*uint64)(unsafe.Add(p, 8)) = v.Taken
	*(*uint64)(unsafe.Add(p, 16)) = v.Files
	*(*uint64)(unsafe.Add(p, 24)) = v.Bytes
}

func loadWorkspaceSnapshot(p unsafe.Pointer) WorkspaceSnapshot {
	return WorkspaceSnapshot{
		ID:    *(*uint64)(p),
		Taken: *(*uint64)(unsafe.Add(p, 8)),
		Files: *(*uint64)(unsafe.Add(p, 16)),
		Bytes: *(*uint64)(unsafe.Add(p, 24)),
	}
}

// WorkspaceDirectory is a handle of stile:capability/workspace/directory.
type WorkspaceDirectory struct{ handle uint32 }

//go:wasmimport stile:capability/workspace@0.1.0 [resource-drop]directory
func dropWorkspaceDirectory(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *WorkspaceDirectory) Drop() {
	if r.handle != 0 {
		dropWorkspaceDirectory(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.read
func import105(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// The whole file as UTF-8 text.
func (r *WorkspaceDirectory) Read(path string) (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	o := c.area(48)
	f3 = c.keep(o)
	import105(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.read-with-digest
func import106(f0 uint32, f1 uint32, f2 uint32, f3 uint64, f4 uint32)

// The file with its digest, and with its text if it has at most `max` bytes.
func (r *WorkspaceDirectory) ReadWithDigest(path string, max uint64) (out WorkspaceWhole, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint64
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint64(max)
	o := c.area(48)
	f4 = c.keep(o)
	import106(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadWorkspaceWhole(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.read-lines
func import107(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32, f6 uint32)

// Lines `from` to `to`, counted from 1, both included. Without `to`: up to the end.
func (r *WorkspaceDirectory) ReadLines(path string, from uint32, to *uint32) (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	var f6 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint32(from)
	if to != nil {
		f4 = uint32(1)
		f5 = uint32((*to))
	}
	o := c.area(48)
	f6 = c.keep(o)
	import107(f0, f1, f2, f3, f4, f5, f6)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.read-bytes
func import108(f0 uint32, f1 uint32, f2 uint32, f3 uint64, f4 uint32, f5 uint32)

// At most 262,144 bytes a call; fewer at the end of the file.
func (r *WorkspaceDirectory) ReadBytes(path string, offset uint64, length uint32) (out []byte, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint64
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint64(offset)
	f4 = uint32(length)
	o := c.area(48)
	f5 = c.keep(o)
	import108(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadBytes(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.read-blob
func import109(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

func (r *WorkspaceDirectory) ReadBlob(path string) (out *Blob, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	o := c.area(48)
	f3 = c.keep(o)
	import109(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &Blob{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.write
func import110(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32)

// Creates or replaces the file, and creates missing parent directories.
func (r *WorkspaceDirectory) Write(path string, text string) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint32(c.text(text))
	f4 = uint32(len(text))
	o := c.area(48)
	f5 = c.keep(o)
	import110(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.write-bytes
func import111(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32)

// At most 262,144 bytes a call.
func (r *WorkspaceDirectory) WriteBytes(path string, bytes []byte) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint32(c.keep(unsafe.Pointer(unsafe.SliceData(bytes))))
	f4 = uint32(len(bytes))
	o := c.area(48)
	f5 = c.keep(o)
	import111(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.write-blob
func import112(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

func (r *WorkspaceDirectory) WriteBlob(path string, source *Blob) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint32(source.handle)
	o := c.area(48)
	f4 = c.keep(o)
	import112(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.replace
func import113(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32, f6 uint32, f7 uint32, f8 uint32)

// Writes the text if the content of the file has this digest, as `blob.digest` has it, or without one, if there is no file.
// Otherwise fails with `conflict`. Returns the digest of the text.
func (r *WorkspaceDirectory) Replace(path string, text string, digest *string) (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	var f6 uint32
	var f7 uint32
	var f8 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint32(c.text(text))
	f4 = uint32(len(text))
	if digest != nil {
		f5 = uint32(1)
		f6 = uint32(c.text((*digest)))
		f7 = uint32(len((*digest)))
	}
	o := c.area(48)
	f8 = c.keep(o)
	import113(f0, f1, f2, f3, f4, f5, f6, f7, f8)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.append
func import114(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32)

func (r *WorkspaceDirectory) Append(path string, text string) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint32(c.text(text))
	f4 = uint32(len(text))
	o := c.area(48)
	f5 = c.keep(o)
	import114(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.append-bytes
func import115(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32)

// At most 262,144 bytes a call.
func (r *WorkspaceDirectory) AppendBytes(path string, bytes []byte) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint32(c.keep(unsafe.Pointer(unsafe.SliceData(bytes))))
	f4 = uint32(len(bytes))
	o := c.area(48)
	f5 = c.keep(o)
	import115(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.edit
func import116(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32)

// Applies literal replacements, all or none. Each `old` must occur exactly once in the file as it is now. At most 1,000
// replacements, with at most 512 KiB of `old` in total. Fails with `conflict` if others keep changing the file meanwhile.
func (r *WorkspaceDirectory) Edit(path string, replacements []WorkspaceReplacement) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	list117 := c.elements(len(replacements), 16)
	for k, v := range replacements {
		p := unsafe.Add(list117, k*16)
		storeWorkspaceReplacement(c, p, v)
	}
	f3 = uint32(c.keep(list117))
	f4 = uint32(len(replacements))
	o := c.area(48)
	f5 = c.keep(o)
	import116(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.list
func import118(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32, f6 uint32, f7 uint32)

// Entries of one directory in byte order of names, at most 1,000 a page.
func (r *WorkspaceDirectory) List(path string, limit uint32, cursor *string) (out WorkspacePage, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	var f6 uint32
	var f7 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint32(limit)
	if cursor != nil {
		f4 = uint32(1)
		f5 = uint32(c.text((*cursor)))
		f6 = uint32(len((*cursor)))
	}
	o := c.area(48)
	f7 = c.keep(o)
	import118(f0, f1, f2, f3, f4, f5, f6, f7)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadWorkspacePage(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.find
func import119(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32, f6 uint32, f7 uint32)

// Paths below this directory that match a glob, at most 1,000 a page. `*` and `?` match no slash, and `**` between slashes
// matches any number of directories. `[a-z]` and `{a,b}` match alternatives. A glob without a slash matches the last name.
// Links are not followed. Each call searches for a limited time: repeat it with the cursor until there is none.
func (r *WorkspaceDirectory) Find(glob string, limit uint32, cursor *string) (out WorkspaceFound, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	var f6 uint32
	var f7 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(glob))
	f2 = uint32(len(glob))
	f3 = uint32(limit)
	if cursor != nil {
		f4 = uint32(1)
		f5 = uint32(c.text((*cursor)))
		f6 = uint32(len((*cursor)))
	}
	o := c.area(48)
	f7 = c.keep(o)
	import119(f0, f1, f2, f3, f4, f5, f6, f7)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadWorkspaceFound(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.grep
func import120(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32, f6 uint32, f7 uint32, f8 uint32, f9 uint32, f10 uint32, f11 uint32, f12 uint32)

// Lines that match a regular expression (RE2), at most 1,000 a page. Files come in the order of `find`. Repeat the call
// with the cursor, the same pattern and the same search until there is no cursor.
func (r *WorkspaceDirectory) Grep(pattern string, search WorkspaceSearch, limit uint32, cursor *string) (out WorkspaceMatches, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	var f6 uint32
	var f7 uint32
	var f8 uint32
	var f9 uint32
	var f10 uint32
	var f11 uint32
	var f12 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(pattern))
	f2 = uint32(len(pattern))
	list121 := c.elements(len(search.Include), 8)
	for k, v := range search.Include {
		p := unsafe.Add(list121, k*8)
		c.storeString(p, v)
	}
	f3 = uint32(c.keep(list121))
	f4 = uint32(len(search.Include))
	list122 := c.elements(len(search.Exclude), 8)
	for k, v := range search.Exclude {
		p := unsafe.Add(list122, k*8)
		c.storeString(p, v)
	}
	f5 = uint32(c.keep(list122))
	f6 = uint32(len(search.Exclude))
	f7 = uint32(search.Context)
	f8 = uint32(limit)
	if cursor != nil {
		f9 = uint32(1)
		f10 = uint32(c.text((*cursor)))
		f11 = uint32(len((*cursor)))
	}
	o := c.area(48)
	f12 = c.keep(o)
	import120(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadWorkspaceMatches(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.diff
func import123(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32)

// A unified diff of two text files of at most 1 MiB; empty when they are the same.
func (r *WorkspaceDirectory) Diff(before string, after string) (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(before))
	f2 = uint32(len(before))
	f3 = uint32(c.text(after))
	f4 = uint32(len(after))
	o := c.area(48)
	f5 = c.keep(o)
	import123(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.diff-revision
func import124(f0 uint32, f1 uint32, f2 uint32, f3 uint64, f4 uint32)

// A diff of an earlier content of the path and what it holds now.
func (r *WorkspaceDirectory) DiffRevision(path string, revision uint64) (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint64
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint64(revision)
	o := c.area(48)
	f4 = c.keep(o)
	import124(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.stat
func import125(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// For a link: the status of the link itself, not of its target.
func (r *WorkspaceDirectory) Stat(path string) (out WorkspaceStatus, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	o := c.area(48)
	f3 = c.keep(o)
	import125(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadWorkspaceStatus(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.set-mode
func import126(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

func (r *WorkspaceDirectory) SetMode(path string, mode uint32) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint32(mode)
	o := c.area(48)
	f4 = c.keep(o)
	import126(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.make-link
func import127(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32)

// `target` is relative to the link's directory. A target outside the handle's directory is denied, now and when it is followed.
func (r *WorkspaceDirectory) MakeLink(path string, target string) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint32(c.text(target))
	f4 = uint32(len(target))
	o := c.area(48)
	f5 = c.keep(o)
	import127(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.read-link
func import128(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

func (r *WorkspaceDirectory) ReadLink(path string) (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	o := c.area(48)
	f3 = c.keep(o)
	import128(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.make-directory
func import129(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Creates the directory and missing parent directories. An existing directory is left unchanged.
func (r *WorkspaceDirectory) MakeDirectory(path string) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	o := c.area(48)
	f3 = c.keep(o)
	import129(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.move
func import130(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32)

func (r *WorkspaceDirectory) Move(source string, target string) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(source))
	f2 = uint32(len(source))
	f3 = uint32(c.text(target))
	f4 = uint32(len(target))
	o := c.area(48)
	f5 = c.keep(o)
	import130(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.copy
func import131(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32)

func (r *WorkspaceDirectory) Copy(source string, target string) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(source))
	f2 = uint32(len(source))
	f3 = uint32(c.text(target))
	f4 = uint32(len(target))
	o := c.area(48)
	f5 = c.keep(o)
	import131(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.remove
func import132(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// `recursive` removes a directory with its contents.
func (r *WorkspaceDirectory) Remove(path string, recursive bool) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	if recursive {
		f3 = uint32(1)
	}
	o := c.area(48)
	f4 = c.keep(o)
	import132(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.history
func import133(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// What the path held before it was replaced, removed or moved away, newest first. On a directory on disk, this,
// `diff-revision` and the functions below up to `remove-snapshot` fail with `unavailable`.
func (r *WorkspaceDirectory) History(path string) (out []WorkspaceRevision, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	o := c.area(48)
	f3 = c.keep(o)
	import133(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadList(unsafe.Add(o, 8), 24, func(p unsafe.Pointer) WorkspaceRevision { return loadWorkspaceRevision(p) })
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.read-revision
func import134(f0 uint32, f1 uint32, f2 uint32, f3 uint64, f4 uint32)

func (r *WorkspaceDirectory) ReadRevision(path string, revision uint64) (out *Blob, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint64
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint64(revision)
	o := c.area(48)
	f4 = c.keep(o)
	import134(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &Blob{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.restore
func import135(f0 uint32, f1 uint32, f2 uint32, f3 uint64, f4 uint32)

// Writes earlier content back to the path.
func (r *WorkspaceDirectory) Restore(path string, revision uint64) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint64
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	f3 = uint64(revision)
	o := c.area(48)
	f4 = c.keep(o)
	import135(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.snapshot
func import136(f0 uint32, f1 uint32)

// Takes a snapshot of this directory and returns its id.
func (r *WorkspaceDirectory) Snapshot() (out uint64, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import136(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = *(*uint64)(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.snapshots
func import137(f0 uint32, f1 uint32)

// Newest first.
func (r *WorkspaceDirectory) Snapshots() (out []WorkspaceSnapshot, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import137(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadList(unsafe.Add(o, 8), 32, func(p unsafe.Pointer) WorkspaceSnapshot { return loadWorkspaceSnapshot(p) })
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.restore-snapshot
func import138(f0 uint32, f1 uint64, f2 uint32)

// Restores this directory to the snapshot. Later content is removed, but stays in the history.
func (r *WorkspaceDirectory) RestoreSnapshot(iD uint64) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint64
	var f2 uint32
	f0 = uint32(r.handle)
	f1 = uint64(iD)
	o := c.area(48)
	f2 = c.keep(o)
	import138(f0, f1, f2)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.remove-snapshot
func import139(f0 uint32, f1 uint64, f2 uint32)

func (r *WorkspaceDirectory) RemoveSnapshot(iD uint64) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint64
	var f2 uint32
	f0 = uint32(r.handle)
	f1 = uint64(iD)
	o := c.area(48)
	f2 = c.keep(o)
	import139(f0, f1, f2)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.subdirectory
func import140(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// A handle for a directory below this one.
func (r *WorkspaceDirectory) Subdirectory(path string) (out *WorkspaceDirectory, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(path))
	f2 = uint32(len(path))
	o := c.area(48)
	f3 = c.keep(o)
	import140(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &WorkspaceDirectory{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 [method]directory.read-only
func import141(f0 uint32, f1 uint32)

// The same directory without the right to change it.
func (r *WorkspaceDirectory) ReadOnly() (out *WorkspaceDirectory, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import141(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &WorkspaceDirectory{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 get
func import142(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Workspace returns the binding of this name, which must be of stile:capability/workspace.
func (r *Env) Workspace(name string) (out *WorkspaceDirectory, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	o := c.area(48)
	f3 = c.keep(o)
	import142(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &WorkspaceDirectory{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/workspace@0.1.0 put
func import143(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// PutWorkspace gives a binding of this name to what runs with this env. The handle is gone afterwards.
func (r *Env) PutWorkspace(name string, directory *WorkspaceDirectory) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	f3 = uint32(give(&directory.handle))
	o := c.area(48)
	f4 = c.keep(o)
	import143(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

type SandboxInput interface{ isSandboxInput() }

type SandboxInputNone struct{}

func (SandboxInputNone) isSandboxInput() {}

type SandboxInputText struct{ Value string }

func (SandboxInputText) isSandboxInput() {}

type SandboxInputBlob struct{ Value *Blob }

func (SandboxInputBlob) isSandboxInput() {}

func storeSandboxInput(c *call, p unsafe.Pointer, v SandboxInput) {
	switch v := v.(type) {
	case nil:
		panic("a SandboxInput is nil")
	case SandboxInputNone:
		*(*uint8)(p) = 0
	case SandboxInputText:
		*(*uint8)(p) = 1
		c.storeString(unsafe.Add(p, 4), v.Value)
	case SandboxInputBlob:
		*(*uint8)(p) = 2
		*(*uint32)(unsafe.Add(p, 4)) = give(&v.Value.handle)
	}
}

func loadSandboxInput(p unsafe.Pointer) SandboxInput {
	switch *(*uint8)(p) {
	case 0:
		return SandboxInputNone{}
	case 1:
		return SandboxInputText{loadString(unsafe.Add(p, 4))}
	case 2:
		return SandboxInputBlob{&Blob{*(*uint32)(unsafe.Add(p, 4))}}
	}
	panic("unknown case")
}

type SandboxVariable struct {
	Name  string
	Value string
}

func storeSandboxVariable(c *call, p unsafe.Pointer, v SandboxVariable) {
	c.storeString(p, v.Name)
	c.storeString(unsafe.Add(p, 8), v.Value)
}

func loadSandboxVariable(p unsafe.Pointer) SandboxVariable {
	return SandboxVariable{
		Name:  loadString(p),
		Value: loadString(unsafe.Add(p, 8)),
	}
}

type SandboxCommand struct {
	// The program and its arguments: at most 1,000, with at most 131,072 bytes together.
	Argv []string
	// A folder, relative to /work. "" is /work itself.
	Folder string
	// Further variables, at most 100.
	Env   []SandboxVariable
	Stdin SandboxInput
	// Milliseconds. The grant's limit still applies.
	Timeout *uint32
}

func storeSandboxCommand(c *call, p unsafe.Pointer, v SandboxCommand) {
	list144 := c.elements(len(v.Argv), 8)
	for k, v := range v.Argv {
		p := unsafe.Add(list144, k*8)
		c.storeString(p, v)
	}
	c.storePair(p, list144, len(v.Argv))
	c.storeString(unsafe.Add(p, 8), v.Folder)
	list145 := c.elements(len(v.Env), 16)
	for k, v := range v.Env {
		p := unsafe.Add(list145, k*16)
		storeSandboxVariable(c, p, v)
	}
	c.storePair(unsafe.Add(p, 16), list145, len(v.Env))
	storeSandboxInput(c, unsafe.Add(p, 24), v.Stdin)
	if v.Timeout != nil {
		*(*uint8)(unsafe.Add(p, 36)) = 1
		*(*uint32)(unsafe.Add(unsafe.Add(p, 36), 4)) = *v.Timeout
	}
}

func loadSandboxCommand(p unsafe.Pointer) SandboxCommand {
	return SandboxCommand{
		Argv:    loadList(p, 8, func(p unsafe.Pointer) string { return loadString(p) }),
		Folder:  loadString(unsafe.Add(p, 8)),
		Env:     loadList(unsafe.Add(p, 16), 16, func(p unsafe.Pointer) SandboxVariable { return loadSandboxVariable(p) }),
		Stdin:   loadSandboxInput(unsafe.Add(p, 24)),
		Timeout: loadOption(unsafe.Add(p, 36), 4, func(p unsafe.Pointer) uint32 { return *(*uint32)(p) }),
	}
}

type SandboxStream uint8

const (
	SandboxStreamStdout SandboxStream = iota
	SandboxStreamStderr
)

type SandboxPart struct {
	// Where the part is in all that the process wrote. More than was asked for if what lies between was dropped.
	Offset uint64
	Stream SandboxStream
	Bytes  []byte
}

func storeSandboxPart(c *call, p unsafe.Pointer, v SandboxPart) {
	*(*uint64)(p) = v.Offset
	*(*uint8)(unsafe.Add(p, 8)) = uint8(v.Stream)
	c.storeBytes(unsafe.Add(p, 12), v.Bytes)
}

func loadSandboxPart(p unsafe.Pointer) SandboxPart {
	return SandboxPart{
		Offset: *(*uint64)(p),
		Stream: SandboxStream(*(*uint8)(unsafe.Add(p, 8))),
		Bytes:  loadBytes(unsafe.Add(p, 12)),
	}
}

// Why a process ended: by itself, after its timeout, because the sandbox had no memory left, or because it was stopped.
type SandboxEnding uint8

const (
	SandboxEndingExited SandboxEnding = iota
	SandboxEndingTimeout
	SandboxEndingMemory
	SandboxEndingStopped
)

type SandboxExit struct {
	// 128 plus the number of the signal, if one ended it.
	Code   uint32
	Ending SandboxEnding
	// Bytes of output that are no longer there. The last ones are kept.
	Dropped uint64
}

func storeSandboxExit(c *call, p unsafe.Pointer, v SandboxExit) {
	*(*uint32)(p) = v.Code
	*(*uint8)(unsafe.Add(p, 4)) = uint8(v.Ending)
	*(*uint64)(unsafe.Add(p, 8)) = v.Dropped
}

func loadSandboxExit(p unsafe.Pointer) SandboxExit {
	return SandboxExit{
		Code:    *(*uint32)(p),
		Ending:  SandboxEnding(*(*uint8)(unsafe.Add(p, 4))),
		Dropped: *(*uint64)(unsafe.Add(p, 8)),
	}
}

type SandboxStage interface{ isSandboxStage() }

// More than this many bytes of output have been written, or the process has ended.
type SandboxStageOutput struct{ Value uint64 }

func (SandboxStageOutput) isSandboxStage() {}

type SandboxStageEnded struct{}

func (SandboxStageEnded) isSandboxStage() {}

func storeSandboxStage(c *call, p unsafe.Pointer, v SandboxStage) {
	switch v := v.(type) {
	case nil:
		panic("a SandboxStage is nil")
	case SandboxStageOutput:
		*(*uint8)(p) = 0
		*(*uint64)(unsafe.Add(p, 8)) = v.Value
	case SandboxStageEnded:
		*(*uint8)(p) = 1
	}
}

func loadSandboxStage(p unsafe.Pointer) SandboxStage {
	switch *(*uint8)(p) {
	case 0:
		return SandboxStageOutput{*(*uint64)(unsafe.Add(p, 8))}
	case 1:
		return SandboxStageEnded{}
	}
	panic("unknown case")
}

type SandboxNote struct {
	Path   string
	Reason string
}

func storeSandboxNote(c *call, p unsafe.Pointer, v SandboxNote) {
	c.storeString(p, v.Path)
	c.storeString(unsafe.Add(p, 8), v.Reason)
}

func loadSandboxNote(p unsafe.Pointer) SandboxNote {
	return SandboxNote{
		Path:   loadString(p),
		Reason: loadString(unsafe.Add(p, 8)),
	}
}

// What was done to the target of a copy. Each list has at most 1,000 entries, and `omitted` counts those that are left out.
type SandboxChanges struct {
	Added   []string
	Changed []string
	Removed []string
	// Paths that changed on both sides since the last copy. The file of the directory stays, and that of the sandbox is kept
	// under the name with ".sandbox" at its end.
	Conflicts []SandboxNote
	// What was not copied, and why.
	Skipped []SandboxNote
	Omitted uint32
}

func storeSandboxChanges(c *call, p unsafe.Pointer, v SandboxChanges) {
	list146 := c.elements(len(v.Added), 8)
	for k, v := range v.Added {
		p := unsafe.Add(list146, k*8)
		c.storeString(p, v)
	}
	c.storePair(p, list146, len(v.Added))
	list147 := c.elements(len(v.Changed), 8)
	for k, v := range v.Changed {
		p := unsafe.Add(list147, k*8)
		c.storeString(p, v)
	}
	c.storePair(unsafe.Add(p, 8), list147, len(v.Changed))
	list148 := c.elements(len(v.Removed), 8)
	for k, v := range v.Removed {
		p := unsafe.Add(list148, k*8)
		c.storeString(p, v)
	}
	c.storePair(unsafe.Add(p, 16), list148, len(v.Removed))
	list149 := c.elements(len(v.Conflicts), 16)
	for k, v := range v.Conflicts {
		p := unsafe.Add(list149, k*16)
		storeSandboxNote(c, p, v)
	}
	c.storePair(unsafe.Add(p, 24), list149, len(v.Conflicts))
	list150 := c.elements(len(v.Skipped), 16)
	for k, v := range v.Skipped {
		p := unsafe.Add(list150, k*16)
		storeSandboxNote(c, p, v)
	}
	c.storePair(unsafe.Add(p, 32), list150, len(v.Skipped))
	*(*uint32)(unsafe.Add(p, 40)) = v.Omitted
}

func loadSandboxChanges(p unsafe.Pointer) SandboxChanges {
	return SandboxChanges{
		Added:     loadList(p, 8, func(p unsafe.Pointer) string { return loadString(p) }),
		Changed:   loadList(unsafe.Add(p, 8), 8, func(p unsafe.Pointer) string { return loadString(p) }),
		Removed:   loadList(unsafe.Add(p, 16), 8, func(p unsafe.Pointer) string { return loadString(p) }),
		Conflicts: loadList(unsafe.Add(p, 24), 16, func(p unsafe.Pointer) SandboxNote { return loadSandboxNote(p) }),
		Skipped:   loadList(unsafe.Add(p, 32), 16, func(p unsafe.Pointer) SandboxNote { return loadSandboxNote(p) }),
		Omitted:   *(*uint32)(unsafe.Add(p, 40)),
	}
}

// SandboxContainer is a handle of stile:capability/sandbox/container.
type SandboxContainer struct{ handle uint32 }

//go:wasmimport stile:capability/sandbox@0.1.0 [resource-drop]container
func dropSandboxContainer(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *SandboxContainer) Drop() {
	if r.handle != 0 {
		dropSandboxContainer(r.handle)
		r.handle = 0
	}
}

// SandboxProcess is a handle of stile:capability/sandbox/process.
type SandboxProcess struct{ handle uint32 }

//go:wasmimport stile:capability/sandbox@0.1.0 [resource-drop]process
func dropSandboxProcess(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *SandboxProcess) Drop() {
	if r.handle != 0 {
		dropSandboxProcess(r.handle)
		r.handle = 0
	}
}

// SandboxTransfer is a handle of stile:capability/sandbox/transfer.
type SandboxTransfer struct{ handle uint32 }

//go:wasmimport stile:capability/sandbox@0.1.0 [resource-drop]transfer
func dropSandboxTransfer(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *SandboxTransfer) Drop() {
	if r.handle != 0 {
		dropSandboxTransfer(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/sandbox@0.1.0 [method]container.start
func import151(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32, f6 uint32, f7 uint32, f8 uint32, f9 uint32, f10 uint32, f11 uint32, f12 uint32)

// Starts a process and returns at once. `take` of the process reports what went wrong later. At most 16 run at a time.
func (r *SandboxContainer) Start(command SandboxCommand) (out *SandboxProcess, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	var f6 uint32
	var f7 uint32
	var f8 uint32
	var f9 uint32
	var f10 uint32
	var f11 uint32
	var f12 uint32
	f0 = uint32(r.handle)
	list152 := c.elements(len(command.Argv), 8)
	for k, v := range command.Argv {
		p := unsafe.Add(list152, k*8)
		c.storeString(p, v)
	}
	f1 = uint32(c.keep(list152))
	f2 = uint32(len(command.Argv))
	f3 = uint32(c.text(command.Folder))
	f4 = uint32(len(command.Folder))
	list153 := c.elements(len(command.Env), 16)
	for k, v := range command.Env {
		p := unsafe.Add(list153, k*16)
		storeSandboxVariable(c, p, v)
	}
	f5 = uint32(c.keep(list153))
	f6 = uint32(len(command.Env))
	switch v := command.Stdin.(type) {
	case nil:
		panic("a SandboxInput is nil")
	case SandboxInputNone:
		f7 = uint32(0)
		_ = v
	case SandboxInputText:
		f7 = uint32(1)
		f8 = uint32(c.text(v.Value))
		f9 = uint32(len(v.Value))
	case SandboxInputBlob:
		f7 = uint32(2)
		f8 = uint32(give(&v.Value.handle))
	}
	if command.Timeout != nil {
		f10 = uint32(1)
		f11 = uint32((*command.Timeout))
	}
	o := c.area(48)
	f12 = c.keep(o)
	import151(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &SandboxProcess{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/sandbox@0.1.0 [method]container.push
func import154(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// Copies what changed in the directory since the last copy to a folder of the sandbox, relative to /work.
func (r *SandboxContainer) Push(directory *WorkspaceDirectory, to string) (out *SandboxTransfer, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(directory.handle)
	f2 = uint32(c.text(to))
	f3 = uint32(len(to))
	o := c.area(48)
	f4 = c.keep(o)
	import154(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &SandboxTransfer{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/sandbox@0.1.0 [method]container.pull
func import155(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// Copies what changed in a folder of the sandbox since the last copy to the directory. Processes stand still meanwhile.
func (r *SandboxContainer) Pull(directory *WorkspaceDirectory, from string) (out *SandboxTransfer, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(directory.handle)
	f2 = uint32(c.text(from))
	f3 = uint32(len(from))
	o := c.area(48)
	f4 = c.keep(o)
	import155(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &SandboxTransfer{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/sandbox@0.1.0 [method]container.limits
func import156(f0 uint32, f1 uint32)

// The limits that hold, and how that was found out.
func (r *SandboxContainer) Limits() (out []SandboxNote, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import156(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadList(unsafe.Add(o, 8), 16, func(p unsafe.Pointer) SandboxNote { return loadSandboxNote(p) })
	return
}

//go:wasmimport stile:capability/sandbox@0.1.0 [method]process.subscribe
func import157(f0 uint32, f1 uint32, f2 uint64) uint32

func (r *SandboxProcess) Subscribe(stage SandboxStage) *Pollable {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint64
	f0 = uint32(r.handle)
	switch v := stage.(type) {
	case nil:
		panic("a SandboxStage is nil")
	case SandboxStageOutput:
		f1 = uint32(0)
		f2 = uint64(v.Value)
	case SandboxStageEnded:
		f1 = uint32(1)
		_ = v
	}
	return &Pollable{import157(f0, f1, f2)}
}

//go:wasmimport stile:capability/sandbox@0.1.0 [method]process.read
func import158(f0 uint32, f1 uint64, f2 uint32)

// The output from an offset on, at most 262,144 bytes of one stream. None if there is no more for now.
func (r *SandboxProcess) Read(offset uint64) (out *SandboxPart, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint64
	var f2 uint32
	f0 = uint32(r.handle)
	f1 = uint64(offset)
	o := c.area(48)
	f2 = c.keep(o)
	import158(f0, f1, f2)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadOption(unsafe.Add(o, 8), 8, func(p unsafe.Pointer) SandboxPart { return loadSandboxPart(p) })
	return
}

//go:wasmimport stile:capability/sandbox@0.1.0 [method]process.take
func import159(f0 uint32, f1 uint32)

// Waits until the process and all that it started have ended.
func (r *SandboxProcess) Take() (out SandboxExit, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import159(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadSandboxExit(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/sandbox@0.1.0 [method]process.stop
func import160(f0 uint32)

// Ends the process and all that it started.
func (r *SandboxProcess) Stop() {
	c := begin()
	defer c.end()
	var f0 uint32
	f0 = uint32(r.handle)
	import160(f0)
}

//go:wasmimport stile:capability/sandbox@0.1.0 [method]transfer.subscribe
func import161(f0 uint32) uint32

func (r *SandboxTransfer) Subscribe() *Pollable {
	c := begin()
	defer c.end()
	var f0 uint32
	f0 = uint32(r.handle)
	return &Pollable{import161(f0)}
}

//go:wasmimport stile:capability/sandbox@0.1.0 [method]transfer.take
func import162(f0 uint32, f1 uint32)

func (r *SandboxTransfer) Take() (out SandboxChanges, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(56)
	f1 = c.keep(o)
	import162(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadSandboxChanges(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/sandbox@0.1.0 get
func import163(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Sandbox returns the binding of this name, which must be of stile:capability/sandbox.
func (r *Env) Sandbox(name string) (out *SandboxContainer, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	o := c.area(48)
	f3 = c.keep(o)
	import163(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &SandboxContainer{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/sandbox@0.1.0 put
func import164(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// PutSandbox gives a binding of this name to what runs with this env. The handle is gone afterwards.
func (r *Env) PutSandbox(name string, container *SandboxContainer) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	f3 = uint32(give(&container.handle))
	o := c.area(48)
	f4 = c.keep(o)
	import164(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

// `data` is JSON. It comes from outside and is not to be trusted; `from` is where, as the host says. `received` is in milliseconds since
// 1970-01-01T00:00:00Z.
type SignalsMessage struct {
	Data     string
	From     string
	Received uint64
}

func storeSignalsMessage(c *call, p unsafe.Pointer, v SignalsMessage) {
	c.storeString(p, v.Data)
	c.storeString(unsafe.Add(p, 8), v.From)
	*(*uint64)(unsafe.Add(p, 16)) = v.Received
}

func loadSignalsMessage(p unsafe.Pointer) SignalsMessage {
	return SignalsMessage{
		Data:     loadString(p),
		From:     loadString(unsafe.Add(p, 8)),
		Received: *(*uint64)(unsafe.Add(p, 16)),
	}
}

// SignalsMailboxes is a handle of stile:capability/signals/mailboxes.
type SignalsMailboxes struct{ handle uint32 }

//go:wasmimport stile:capability/signals@0.1.0 [resource-drop]mailboxes
func dropSignalsMailboxes(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *SignalsMailboxes) Drop() {
	if r.handle != 0 {
		dropSignalsMailboxes(r.handle)
		r.handle = 0
	}
}

// SignalsPending is a handle of stile:capability/signals/pending.
type SignalsPending struct{ handle uint32 }

//go:wasmimport stile:capability/signals@0.1.0 [resource-drop]pending
func dropSignalsPending(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *SignalsPending) Drop() {
	if r.handle != 0 {
		dropSignalsPending(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/signals@0.1.0 [method]mailboxes.receive
func import165(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint64, f5 uint32)

// Waits for a message in a mailbox, for at most this long. Fails with `unavailable` if the call is not durable.
func (r *SignalsMailboxes) Receive(mailbox string, milliseconds *uint64) (out *SignalsPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint64
	var f5 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(mailbox))
	f2 = uint32(len(mailbox))
	if milliseconds != nil {
		f3 = uint32(1)
		f4 = uint64((*milliseconds))
	}
	o := c.area(48)
	f5 = c.keep(o)
	import165(f0, f1, f2, f3, f4, f5)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &SignalsPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/signals@0.1.0 [method]mailboxes.url
func import166(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// An address to which anybody who has it can post messages for a mailbox, until the call ends. The same mailbox has the same address.
func (r *SignalsMailboxes) URL(mailbox string) (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(mailbox))
	f2 = uint32(len(mailbox))
	o := c.area(48)
	f3 = c.keep(o)
	import166(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/signals@0.1.0 [method]pending.subscribe
func import167(f0 uint32) uint32

// Ready once the mailbox has a message, or the time is over.
func (r *SignalsPending) Subscribe() *Pollable {
	c := begin()
	defer c.end()
	var f0 uint32
	f0 = uint32(r.handle)
	return &Pollable{import167(f0)}
}

//go:wasmimport stile:capability/signals@0.1.0 [method]pending.take
func import168(f0 uint32, f1 uint32)

// The oldest message of the mailbox, which nobody else gets then. None if there is none. Fails with `timed-out` if there is none
// and the time is over.
func (r *SignalsPending) Take() (out *SignalsMessage, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import168(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadOption(unsafe.Add(o, 8), 8, func(p unsafe.Pointer) SignalsMessage { return loadSignalsMessage(p) })
	return
}

//go:wasmimport stile:capability/signals@0.1.0 get
func import169(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Signals returns the binding of this name, which must be of stile:capability/signals.
func (r *Env) Signals(name string) (out *SignalsMailboxes, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	o := c.area(48)
	f3 = c.keep(o)
	import169(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &SignalsMailboxes{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/signals@0.1.0 put
func import170(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// PutSignals gives a binding of this name to what runs with this env. The handle is gone afterwards.
func (r *Env) PutSignals(name string, mailboxes *SignalsMailboxes) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	f3 = uint32(give(&mailboxes.handle))
	o := c.area(48)
	f4 = c.keep(o)
	import170(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

type ToolsDescription struct {
	Name        string
	Description string
	InputSchema string
}

func storeToolsDescription(c *call, p unsafe.Pointer, v ToolsDescription) {
	c.storeString(p, v.Name)
	c.storeString(unsafe.Add(p, 8), v.Description)
	c.storeString(unsafe.Add(p, 16), v.InputSchema)
}

func loadToolsDescription(p unsafe.Pointer) ToolsDescription {
	return ToolsDescription{
		Name:        loadString(p),
		Description: loadString(unsafe.Add(p, 8)),
		InputSchema: loadString(unsafe.Add(p, 16)),
	}
}

// ToolsToolbox is a handle of stile:capability/tools/toolbox.
type ToolsToolbox struct{ handle uint32 }

//go:wasmimport stile:capability/tools@0.1.0 [resource-drop]toolbox
func dropToolsToolbox(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *ToolsToolbox) Drop() {
	if r.handle != 0 {
		dropToolsToolbox(r.handle)
		r.handle = 0
	}
}

// ToolsPending is a handle of stile:capability/tools/pending.
type ToolsPending struct{ handle uint32 }

//go:wasmimport stile:capability/tools@0.1.0 [resource-drop]pending
func dropToolsPending(handle uint32)

// Drop gives the handle up. A handle that was passed on is gone already.
func (r *ToolsPending) Drop() {
	if r.handle != 0 {
		dropToolsPending(r.handle)
		r.handle = 0
	}
}

//go:wasmimport stile:capability/tools@0.1.0 [method]toolbox.search
func import171(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

func (r *ToolsToolbox) Search(query string, limit uint32) []ToolsDescription {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(query))
	f2 = uint32(len(query))
	f3 = uint32(limit)
	o := c.area(8)
	f4 = c.keep(o)
	import171(f0, f1, f2, f3, f4)
	return loadList(o, 24, func(p unsafe.Pointer) ToolsDescription { return loadToolsDescription(p) })
}

//go:wasmimport stile:capability/tools@0.1.0 [method]toolbox.describe
func import172(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

func (r *ToolsToolbox) Describe(names []string) string {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	list173 := c.elements(len(names), 8)
	for k, v := range names {
		p := unsafe.Add(list173, k*8)
		c.storeString(p, v)
	}
	f1 = uint32(c.keep(list173))
	f2 = uint32(len(names))
	o := c.area(8)
	f3 = c.keep(o)
	import172(f0, f1, f2, f3)
	return loadString(o)
}

//go:wasmimport stile:capability/tools@0.1.0 [method]toolbox.start
func import174(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32, f5 uint32, f6 uint32)

func (r *ToolsToolbox) Start(tool string, input string, env *Env) (out *ToolsPending, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	var f5 uint32
	var f6 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(tool))
	f2 = uint32(len(tool))
	f3 = uint32(c.text(input))
	f4 = uint32(len(input))
	f5 = uint32(give(&env.handle))
	o := c.area(48)
	f6 = c.keep(o)
	import174(f0, f1, f2, f3, f4, f5, f6)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &ToolsPending{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/tools@0.1.0 [method]pending.subscribe
func import175(f0 uint32) uint32

func (r *ToolsPending) Subscribe() *Pollable {
	c := begin()
	defer c.end()
	var f0 uint32
	f0 = uint32(r.handle)
	return &Pollable{import175(f0)}
}

//go:wasmimport stile:capability/tools@0.1.0 [method]pending.take
func import176(f0 uint32, f1 uint32)

func (r *ToolsPending) Take() (out string, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	f0 = uint32(r.handle)
	o := c.area(48)
	f1 = c.keep(o)
	import176(f0, f1)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = loadString(unsafe.Add(o, 8))
	return
}

//go:wasmimport stile:capability/tools@0.1.0 get
func import177(f0 uint32, f1 uint32, f2 uint32, f3 uint32)

// Tools returns the binding of this name, which must be of stile:capability/tools.
func (r *Env) Tools(name string) (out *ToolsToolbox, err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	o := c.area(48)
	f3 = c.keep(o)
	import177(f0, f1, f2, f3)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	out = &ToolsToolbox{*(*uint32)(unsafe.Add(o, 8))}
	return
}

//go:wasmimport stile:capability/tools@0.1.0 put
func import178(f0 uint32, f1 uint32, f2 uint32, f3 uint32, f4 uint32)

// PutTools gives a binding of this name to what runs with this env. The handle is gone afterwards.
func (r *Env) PutTools(name string, toolbox *ToolsToolbox) (err error) {
	c := begin()
	defer c.end()
	var f0 uint32
	var f1 uint32
	var f2 uint32
	var f3 uint32
	var f4 uint32
	f0 = uint32(r.handle)
	f1 = uint32(c.text(name))
	f2 = uint32(len(name))
	f3 = uint32(give(&toolbox.handle))
	o := c.area(48)
	f4 = c.keep(o)
	import178(f0, f1, f2, f3, f4)
	if *(*uint8)(o) != 0 {
		err = loadError(unsafe.Add(o, 8))
		return
	}
	return
}

type toolAnnotations struct {
	ReadOnly    bool
	Destructive bool
	Idempotent  bool
	OpenWorld   bool
}

func storeToolAnnotations(c *call, p unsafe.Pointer, v toolAnnotations) {
	*(*bool)(p) = v.ReadOnly
	*(*bool)(unsafe.Add(p, 1)) = v.Destructive
	*(*bool)(unsafe.Add(p, 2)) = v.Idempotent
	*(*bool)(unsafe.Add(p, 3)) = v.OpenWorld
}

func loadToolAnnotations(p unsafe.Pointer) toolAnnotations {
	return toolAnnotations{
		ReadOnly:    *(*bool)(p),
		Destructive: *(*bool)(unsafe.Add(p, 1)),
		Idempotent:  *(*bool)(unsafe.Add(p, 2)),
		OpenWorld:   *(*bool)(unsafe.Add(p, 3)),
	}
}

type toolDefinition struct {
	Name        string
	Description string
	// JSON Schema 2020-12, as JSON text.
	InputSchema  string
	OutputSchema *string
	Annotations  toolAnnotations
}

func storeToolDefinition(c *call, p unsafe.Pointer, v toolDefinition) {
	c.storeString(p, v.Name)
	c.storeString(unsafe.Add(p, 8), v.Description)
	c.storeString(unsafe.Add(p, 16), v.InputSchema)
	if v.OutputSchema != nil {
		*(*uint8)(unsafe.Add(p, 24)) = 1
		c.storeString(unsafe.Add(unsafe.Add(p, 24), 4), *v.OutputSchema)
	}
	storeToolAnnotations(c, unsafe.Add(p, 36), v.Annotations)
}

func loadToolDefinition(p unsafe.Pointer) toolDefinition {
	return toolDefinition{
		Name:         loadString(p),
		Description:  loadString(unsafe.Add(p, 8)),
		InputSchema:  loadString(unsafe.Add(p, 16)),
		OutputSchema: loadOption(unsafe.Add(p, 24), 4, func(p unsafe.Pointer) string { return loadString(p) }),
		Annotations:  loadToolAnnotations(unsafe.Add(p, 36)),
	}
}

type toolProblem struct {
	Path    string
	Message string
}

func storeToolProblem(c *call, p unsafe.Pointer, v toolProblem) {
	c.storeString(p, v.Path)
	c.storeString(unsafe.Add(p, 8), v.Message)
}

func loadToolProblem(p unsafe.Pointer) toolProblem {
	return toolProblem{
		Path:    loadString(p),
		Message: loadString(unsafe.Add(p, 8)),
	}
}

type toolFailure struct {
	Name    string
	Message string
	Stack   string
}

func storeToolFailure(c *call, p unsafe.Pointer, v toolFailure) {
	c.storeString(p, v.Name)
	c.storeString(unsafe.Add(p, 8), v.Message)
	c.storeString(unsafe.Add(p, 16), v.Stack)
}

func loadToolFailure(p unsafe.Pointer) toolFailure {
	return toolFailure{
		Name:    loadString(p),
		Message: loadString(unsafe.Add(p, 8)),
		Stack:   loadString(unsafe.Add(p, 16)),
	}
}

type toolError interface{ istoolError() }

type toolErrorUnknownTool struct{ Value string }

func (toolErrorUnknownTool) istoolError() {}

// At most 20 problems.
type toolErrorInvalidInput struct{ Value []toolProblem }

func (toolErrorInvalidInput) istoolError() {}

type toolErrorDenied struct{ Value Denial }

func (toolErrorDenied) istoolError() {}

// The guest's own runtime reached a limit: memory, stack, string length, or a promise that nothing can settle. The text names it.
type toolErrorExhausted struct{ Value string }

func (toolErrorExhausted) istoolError() {}

type toolErrorFailed struct{ Value toolFailure }

func (toolErrorFailed) istoolError() {}

func storeToolError(c *call, p unsafe.Pointer, v toolError) {
	switch v := v.(type) {
	case nil:
		panic("a toolError is nil")
	case toolErrorUnknownTool:
		*(*uint8)(p) = 0
		c.storeString(unsafe.Add(p, 4), v.Value)
	case toolErrorInvalidInput:
		*(*uint8)(p) = 1
		list179 := c.elements(len(v.Value), 16)
		for k, v := range v.Value {
			p := unsafe.Add(list179, k*16)
			storeToolProblem(c, p, v)
		}
		c.storePair(unsafe.Add(p, 4), list179, len(v.Value))
	case toolErrorDenied:
		*(*uint8)(p) = 2
		storeDenial(c, unsafe.Add(p, 4), v.Value)
	case toolErrorExhausted:
		*(*uint8)(p) = 3
		c.storeString(unsafe.Add(p, 4), v.Value)
	case toolErrorFailed:
		*(*uint8)(p) = 4
		storeToolFailure(c, unsafe.Add(p, 4), v.Value)
	}
}

func loadToolError(p unsafe.Pointer) toolError {
	switch *(*uint8)(p) {
	case 0:
		return toolErrorUnknownTool{loadString(unsafe.Add(p, 4))}
	case 1:
		return toolErrorInvalidInput{loadList(unsafe.Add(p, 4), 16, func(p unsafe.Pointer) toolProblem { return loadToolProblem(p) })}
	case 2:
		return toolErrorDenied{loadDenial(unsafe.Add(p, 4))}
	case 3:
		return toolErrorExhausted{loadString(unsafe.Add(p, 4))}
	case 4:
		return toolErrorFailed{loadToolFailure(unsafe.Add(p, 4))}
	}
	panic("unknown case")
}

const definitionSize = 40
const resultSize, resultOffset = 40, 4

func storeResult(c *call, p unsafe.Pointer, v toolError) {
	*(*uint8)(p) = 1
	storeToolError(c, unsafe.Add(p, 4), v)
}
