package deflate

import (
	"hash/crc32"
	"math/bits"
	"sync"
)

const window = 32 << 10 // bytes that a match may go back

// Reader decompresses. It is not safe for concurrent use. Its owner closes it.
//
// compress/flate asks for its input and cannot continue after it got none. This one is a machine whose every state can wait for input or
// for room.
type Reader struct {
	format Format
	state  state
	closed bool

	input []byte // that was not read yet
	hold  uint64 // bits that were taken from it
	held  uint

	past []byte // the last output, at most window bytes
	out  []byte // past, and the output of this step
	most int    // length of out when the step ends

	last           bool // the block is the last
	left           int  // bytes of a stored block or a match, or a count of the header
	distance       int
	literals       int // how many codes of each kind the block has
	distances      int
	lengthCodes    int
	lengths        [288 + 32]uint8
	at             int // in lengths
	repeat         int
	literal        codes
	far            codes
	flags          uint32
	checksum, size uint32
	headerSum      uint32
}

type state uint8

const (
	stateHead state = iota
	stateExtraLength
	stateExtra
	stateName
	stateComment
	stateHeaderSum
	stateBlock
	stateStoredLength
	stateStored
	stateTable
	stateLengthLengths
	stateLengths
	stateRepeat
	stateCode
	stateLengthBits
	stateFar
	stateFarBits
	stateMatch
	stateChecksum
	stateSize
	stateEnd
)

// NewReader returns a reader.
func NewReader(format Format) *Reader {
	r := &Reader{format: format, checksum: 1}
	switch format {
	case Gzip:
		r.checksum = 0
	case Raw:
		r.state = stateBlock
	case Zlib:
	}
	return r
}

// buffers are those of steps, which readers share.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, window+Piece)
	return &b
}}

// Step decompresses input, and calls take with the output, which is valid meanwhile. While more is set, the next input must be empty. ended
// is set once the end was reached, and rest is then how many bytes of the input come after it. A *[DataError] says what is wrong with the
// data; take has got all output before it.
func (r *Reader) Step(input []byte, take func(output []byte)) (more, ended bool, rest int, err error) {
	switch {
	case r.closed:
		return false, false, 0, ErrClosed
	case len(input) > Piece:
		return false, false, 0, ErrTooMuch
	case len(r.input) > 0 && len(input) > 0:
		return false, false, 0, ErrPending
	case r.state == stateEnd:
		return false, true, len(input), nil
	}
	if len(input) > 0 {
		r.input = input
	}
	buffer := buffers.Get().(*[]byte)
	r.out = append((*buffer)[:0], r.past...)
	before := len(r.out)
	r.most = before + Piece
	err = r.run()
	output := r.out[before:]
	r.check(output)
	if err == nil && r.state >= stateChecksum && r.state < stateEnd {
		err = r.trailer()
	}
	take(output)
	r.past = append(r.past[:0], r.out[max(0, len(r.out)-window):]...)
	full := len(r.out) == r.most
	r.out = nil
	buffers.Put(buffer)
	switch {
	case err != nil:
		_ = r.Close()
		return false, false, 0, err
	case r.state == stateEnd:
		rest = int(r.held/8) + len(r.input)
		r.input, r.past, r.held = nil, nil, 0
		return false, true, rest, nil
	}
	if !full {
		r.input = nil
	} else if len(r.input) > 0 {
		r.input = append([]byte(nil), r.input...)
	}
	return full, false, 0, nil
}

// Memory is the most bytes that the reader takes, with input that was not read.
func (r *Reader) Memory() int { return 64<<10 + Piece }

// Close frees the memory. Steps fail afterwards. Closing again does nothing.
func (r *Reader) Close() error {
	r.closed, r.input, r.past = true, nil, nil
	return nil
}

// check counts output in the checksum.
func (r *Reader) check(output []byte) {
	switch r.format {
	case Gzip:
		r.checksum = crc32.Update(r.checksum, crc32.IEEETable, output)
		r.size += uint32(len(output))
	case Zlib:
		r.checksum = adler(r.checksum, output)
	case Raw:
	}
}

// need has n bits held, at most 32, if the input has them.
func (r *Reader) need(n uint) bool {
	if r.held < n {
		r.fill()
	}
	return r.held >= n
}

func (r *Reader) fill() {
	for r.held <= 56 && len(r.input) > 0 {
		r.hold |= uint64(r.input[0]) << r.held
		r.input = r.input[1:]
		r.held += 8
	}
}

// take takes n held bits.
func (r *Reader) take(n uint) uint32 {
	v := uint32(r.hold & (1<<n - 1))
	r.hold >>= n
	r.held -= n
	return v
}

// header takes a byte of the header of gzip.
func (r *Reader) header() byte {
	b := byte(r.take(8))
	if r.flags&2 != 0 {
		r.headerSum = crc32.Update(r.headerSum, crc32.IEEETable, []byte{b})
	}
	return b
}

// run works until the data ends, or input or room is wanting.
func (r *Reader) run() error {
	for {
		switch r.state {
		case stateHead, stateExtraLength, stateExtra, stateName, stateComment, stateHeaderSum:
			if waits, err := r.head(); waits || err != nil {
				return err
			}
		case stateBlock:
			if !r.need(3) {
				return nil
			}
			r.last = r.take(1) == 1
			switch r.take(2) {
			case 0:
				r.take(r.held & 7)
				r.state = stateStoredLength
			case 1:
				r.fixed()
				r.state = stateCode
			case 2:
				r.state = stateTable
			default:
				return DataError("invalid block type")
			}
		case stateStoredLength:
			if !r.need(32) {
				return nil
			}
			length, complement := r.take(16), r.take(16)
			if length != complement^0xffff {
				return DataError("invalid stored block lengths")
			}
			r.left, r.state = int(length), stateStored
		case stateStored:
			for r.left > 0 && r.held > 0 && len(r.out) < r.most {
				r.out = append(r.out, byte(r.take(8)))
				r.left--
			}
			if n := min(r.left, len(r.input), r.most-len(r.out)); n > 0 {
				r.out = append(r.out, r.input[:n]...)
				r.input = r.input[n:]
				r.left -= n
			}
			if r.left > 0 {
				return nil
			}
			r.endBlock()
		case stateTable, stateLengthLengths, stateLengths, stateRepeat:
			if waits, err := r.tables(); waits || err != nil {
				return err
			}
		case stateCode, stateLengthBits, stateFar, stateFarBits, stateMatch:
			if waits, err := r.block(); waits || err != nil {
				return err
			}
		case stateChecksum, stateSize, stateEnd:
			return nil // output counts first
		}
	}
}

// endBlock goes on after a block.
func (r *Reader) endBlock() {
	switch {
	case !r.last:
		r.state = stateBlock
	case r.format == Raw:
		r.take(r.held & 7)
		r.state = stateEnd
	default:
		r.take(r.held & 7)
		r.state = stateChecksum
	}
}

// head reads a header.
func (r *Reader) head() (waits bool, err error) {
	if r.format == Zlib {
		if !r.need(16) {
			return true, nil
		}
		method, flags := r.take(8), r.take(8)
		switch {
		case (method<<8|flags)%31 != 0:
			return false, DataError("incorrect header check")
		case method&15 != 8:
			return false, DataError("unknown compression method")
		case method>>4 > 7:
			return false, DataError("invalid window size")
		case flags&0x20 != 0:
			return false, DataError("a dictionary is needed, which is not supported")
		}
		r.state = stateBlock
		return false, nil
	}
	switch r.state {
	case stateHead:
		for ; r.left < 10; r.left++ {
			if !r.need(8) || r.left == 0 && !r.need(16) { // zlib looks at two bytes together
				return true, nil
			}
			b := byte(r.take(8))
			switch {
			case r.left == 0 && b != 0x1f, r.left == 1 && b != 0x8b:
				return false, DataError("incorrect header check")
			case r.left == 2 && b != 8:
				return false, DataError("unknown compression method")
			case r.left == 3:
				if r.flags = uint32(b); b&0xe0 != 0 {
					return false, DataError("unknown header flags set")
				}
				r.headerSum = crc32.ChecksumIEEE([]byte{0x1f, 0x8b, 8, b})
			case r.left > 3:
				r.headerSum = crc32.Update(r.headerSum, crc32.IEEETable, []byte{b})
			}
		}
		r.left, r.state = 0, stateExtraLength
	case stateExtraLength:
		if r.flags&4 != 0 {
			if !r.need(16) {
				return true, nil
			}
			low := int(r.header())
			r.left = low | int(r.header())<<8
		}
		r.state = stateExtra
	case stateExtra:
		for ; r.left > 0; r.left-- {
			if !r.need(8) {
				return true, nil
			}
			r.header()
		}
		r.state = stateName
	case stateName, stateComment:
		if flag := uint32(8) << (r.state - stateName); r.flags&flag != 0 {
			for {
				if !r.need(8) {
					return true, nil
				}
				if r.header() == 0 {
					break
				}
			}
		}
		r.state++
	default: // stateHeaderSum
		if r.flags&2 != 0 {
			if !r.need(16) {
				return true, nil
			}
			if r.take(16) != r.headerSum&0xffff {
				return false, DataError("header crc mismatch")
			}
		}
		r.state = stateBlock
	}
	return false, nil
}

// trailer compares the checksum, and for gzip the size.
func (r *Reader) trailer() error {
	if r.state == stateChecksum {
		if !r.need(32) {
			return nil
		}
		sum := r.take(32)
		if r.format == Zlib {
			sum = bits.ReverseBytes32(sum)
		}
		if sum != r.checksum {
			return DataError("incorrect data check")
		}
		r.state = stateSize
		if r.format == Zlib {
			r.state = stateEnd
		}
	}
	if r.state == stateSize {
		if !r.need(32) {
			return nil
		}
		if r.take(32) != r.size {
			return DataError("incorrect length check")
		}
		r.state = stateEnd
	}
	return nil
}

// order is that of the lengths of the codes of lengths.
var order = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// tables reads the codes of a block.
func (r *Reader) tables() (waits bool, err error) {
	switch r.state {
	case stateTable:
		if !r.need(14) {
			return true, nil
		}
		r.literals, r.distances, r.lengthCodes = int(r.take(5))+257, int(r.take(5))+1, int(r.take(4))+4
		if r.literals > 286 || r.distances > 30 {
			return false, DataError("too many length or distance symbols")
		}
		r.lengths, r.at, r.state = [288 + 32]uint8{}, 0, stateLengthLengths
	case stateLengthLengths:
		for ; r.at < r.lengthCodes; r.at++ {
			if !r.need(3) {
				return true, nil
			}
			r.lengths[order[r.at]] = uint8(r.take(3))
		}
		if !r.literal.build(r.lengths[:19], true) {
			return false, DataError("invalid code lengths set")
		}
		r.lengths, r.at, r.state = [288 + 32]uint8{}, 0, stateLengths
	case stateLengths:
		for r.at < r.literals+r.distances {
			symbol, ok, err := r.decode(&r.literal, "invalid code lengths set")
			if !ok || err != nil {
				return !ok, err
			}
			if symbol >= 16 {
				r.repeat, r.state = int(symbol)-16, stateRepeat
				return false, nil
			}
			r.lengths[r.at] = uint8(symbol)
			r.at++
		}
		return false, r.build()
	default: // stateRepeat
		extra, base := [3]uint{2, 3, 7}[r.repeat], [3]int{3, 3, 11}[r.repeat]
		if !r.need(extra) {
			return true, nil
		}
		n, length := base+int(r.take(extra)), uint8(0)
		if r.repeat == 0 {
			if r.at == 0 {
				return false, DataError("invalid bit length repeat")
			}
			length = r.lengths[r.at-1]
		}
		if r.at+n > r.literals+r.distances {
			return false, DataError("invalid bit length repeat")
		}
		for range n {
			r.lengths[r.at] = length
			r.at++
		}
		r.state = stateLengths
	}
	return false, nil
}

// build makes the codes of a block from their lengths.
func (r *Reader) build() error {
	all := r.lengths[:r.literals+r.distances]
	switch {
	case all[256] == 0:
		return DataError("invalid code -- missing end-of-block")
	case !r.literal.build(all[:r.literals], false):
		return DataError("invalid literal/lengths set")
	case !r.far.build(all[r.literals:], false):
		return DataError("invalid distances set")
	}
	r.state = stateCode
	return nil
}

// fixed makes the codes of a block that brings none.
func (r *Reader) fixed() {
	lengths := r.lengths[:288]
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 8
		}
	}
	r.literal.build(lengths, false)
	for i := range 32 {
		r.lengths[i] = 5
	}
	r.far.build(r.lengths[:32], false)
}

// What the symbols of lengths and of distances stand for: a base and extra bits.
var (
	lengthBase = [29]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthBits = [29]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	farBase    = [30]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	farBits    = [30]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
)

// block reads the content of a compressed block.
func (r *Reader) block() (waits bool, err error) {
	for {
		switch r.state {
		case stateCode:
			if len(r.out) == r.most {
				return true, nil
			}
			symbol, ok, err := r.decode(&r.literal, "invalid literal/length code")
			switch {
			case !ok || err != nil:
				return !ok, err
			case symbol < 256:
				r.out = append(r.out, byte(symbol))
			case symbol == 256:
				r.endBlock()
				return false, nil
			case symbol > 285:
				return false, DataError("invalid literal/length code")
			default:
				r.left, r.state = int(symbol)-257, stateLengthBits
			}
		case stateLengthBits:
			n := uint(lengthBits[r.left])
			if !r.need(n) {
				return true, nil
			}
			r.left, r.state = int(lengthBase[r.left])+int(r.take(n)), stateFar
		case stateFar:
			symbol, ok, err := r.decode(&r.far, "invalid distance code")
			switch {
			case !ok || err != nil:
				return !ok, err
			case symbol > 29:
				return false, DataError("invalid distance code")
			}
			r.distance, r.state = int(symbol), stateFarBits
		case stateFarBits:
			n := uint(farBits[r.distance])
			if !r.need(n) {
				return true, nil
			}
			r.distance, r.state = int(farBase[r.distance])+int(r.take(n)), stateMatch
			if r.distance > len(r.out) || r.distance > window {
				return false, DataError("invalid distance too far back")
			}
		default: // stateMatch
			for from := len(r.out) - r.distance; r.left > 0; {
				n := min(r.left, r.most-len(r.out), len(r.out)-from) // what is copied repeats itself
				if n == 0 {
					return true, nil
				}
				r.out = append(r.out, r.out[from:from+n]...)
				r.left -= n
			}
			r.state = stateCode
		}
	}
}

// quickBits is the length of codes that one look-up decodes.
const quickBits = 10

// codes is a canonical Huffman code.
type codes struct {
	quick   [1 << quickBits]uint16 // by the next bits: symbol << 4 | length; 0 for a longer code or none
	counts  [16]uint16             // of codes by length
	symbols [288]uint16            // in the order of their codes
}

// build makes a code of the lengths of its symbols. It reports false for lengths that make no code: too many, or too few. zlib accepts
// too few if there is one code of one bit, or none. whole refuses these too.
func (c *codes) build(lengths []uint8, whole bool) bool {
	clear(c.quick[:])
	clear(c.counts[:])
	for _, n := range lengths {
		c.counts[n]++
	}
	none := int(c.counts[0]) == len(lengths)
	c.counts[0] = 0
	left, longest := 1, 0
	for n := 1; n < len(c.counts); n++ {
		left = left<<1 - int(c.counts[n])
		if left < 0 {
			return false
		}
		if c.counts[n] > 0 {
			longest = n
		}
	}
	if left > 0 && (whole || longest > 1) {
		return false
	}
	if none {
		return true
	}
	var next, first [16]uint16
	for n, code := 1, uint16(0); n < len(c.counts); n++ {
		code = (code + c.counts[n-1]) << 1
		next[n], first[n] = code, first[n-1]+c.counts[n-1]
	}
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		c.symbols[first[n]] = uint16(symbol)
		first[n]++
		code := next[n]
		next[n]++
		if n > quickBits {
			continue
		}
		for at := int(bits.Reverse16(code) >> (16 - n)); at < len(c.quick); at += 1 << n {
			c.quick[at] = uint16(symbol)<<4 | uint16(n)
		}
	}
	return true
}

// decode takes a code. It reports false, and takes nothing, if the input ends in it.
func (r *Reader) decode(c *codes, wrong DataError) (symbol uint16, ok bool, err error) {
	if r.held < 15 {
		r.fill()
	}
	if entry := c.quick[r.hold&(1<<quickBits-1)]; entry != 0 {
		n := uint(entry & 15)
		if n > r.held {
			return 0, false, nil
		}
		r.hold >>= n
		r.held -= n
		return entry >> 4, true, nil
	}
	code, first, index := 0, 0, 0
	for n := uint(1); n < 16; n++ {
		if n > r.held {
			return 0, false, nil
		}
		code |= int(r.hold>>(n-1)) & 1
		count := int(c.counts[n])
		if code-count < first {
			r.hold >>= n
			r.held -= n
			return c.symbols[index+code-first], true, nil
		}
		index += count
		first = (first + count) << 1
		code <<= 1
	}
	return 0, true, wrong
}
