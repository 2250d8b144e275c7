import CZlib
import ContentCodings
import Expectations
import Testing

/// The text `hello, world` and a line end as gzip(1) and zlib encode it, and data that zlib encodes here.
@Suite struct ContentCodingsTests {
    private static let text = Array("hello, world\n".utf8)
    private static let gzip: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xD7,
        0x51, 0x28, 0xCF, 0x2F, 0xCA, 0x49, 0xE1, 0x02, 0x00, 0x53, 0x74, 0x24, 0xF4, 0x0D, 0x00, 0x00,
        0x00,
    ]
    private static let zlib: [UInt8] = [
        0x78, 0xDA, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xD7, 0x51, 0x28, 0xCF, 0x2F, 0xCA, 0x49, 0xE1, 0x02,
        0x00, 0x21, 0xE7, 0x04, 0x93,
    ]
    private static let raw: [UInt8] = [
        0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xD7, 0x51, 0x28, 0xCF, 0x2F, 0xCA, 0x49, 0xE1, 0x02, 0x00,
    ]

    private func decode(_ content: [UInt8], _ values: String..., isComplete: Bool = true, limit: Int = 65_536) -> String {
        do {
            let codings = try ContentCodings(values.map { $0.utf8 })
            return String(decoding: try codings.decode(content, isComplete: isComplete, limit: limit), as: UTF8.self)
        } catch { return "\(error)" }
    }

    /// Encodes bytes with a window of zlib: 31 for gzip, 15 for zlib.
    private func encoded(_ content: [UInt8], _ window: Int32 = 31) throws -> [UInt8] {
        var stream = z_stream()
        let started = deflateInit2_(
            &stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        try #require(started == Z_OK)
        defer { deflateEnd(&stream) }
        var (input, output) = (content, [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(content.count)))))
        let ended = input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                (stream.next_in, stream.avail_in) = (input.baseAddress, UInt32(input.count))
                (stream.next_out, stream.avail_out) = (output.baseAddress, UInt32(output.count))
                return deflate(&stream, Z_FINISH)
            }
        }
        try #require(ended == Z_STREAM_END)
        return Array(output.dropLast(Int(stream.avail_out)))
    }

    @Test func `gzip, zlib and raw deflate are decoded, in any case and with former names`() {
        for (content, coding) in [(Self.gzip, "gzip"), (Self.gzip, " X-GZip "), (Self.zlib, "deflate"), (Self.raw, "Deflate")] {
            expectEqual(decode(content, coding), "hello, world\n", "\(coding)")
        }
        for coding in ["", "identity", "identity, ,"] { expectEqual(decode(Self.text, coding), "hello, world\n") }
    }

    @Test func `a list of codings is decoded from its end`() throws {
        let twice = try encoded(Self.gzip)
        expectEqual(decode(twice, "gzip, gzip"), "hello, world\n")
        expectEqual(decode(twice, "gzip", "x-gzip"), "hello, world\n")
        let other = try encoded(Self.zlib)
        expectEqual(decode(other, "deflate, gzip"), "hello, world\n")
        expectEqual(decode(other, "gzip, deflate"), #"damaged(ContentCodings.ContentCodings.Coding.deflate)"#)
    }

    @Test(arguments: ["br", "zstd", "compress", "gzip, br", "gzip;q=1"])
    func `another coding is unsupported, by its name`(value: String) {
        let name = value.split(separator: ",").last.map { $0.filter { $0 != " " } } ?? ""
        expectEqual(decode(Self.gzip, value), #"unsupported("\#(name)")"#)
    }

    @Test func `more than four codings are unsupported`() {
        expectEqual(decode(Self.gzip, "gzip,gzip,gzip,gzip", "gzip"), #"unsupported("more than 4 codings")"#)
    }

    @Test func `members follow each other, and garbage behind the last one is ignored`() {
        expectEqual(decode(Self.gzip + Self.gzip, "gzip"), "hello, world\nhello, world\n")
        expectEqual(decode(Self.gzip + [0, 0, 0], "gzip"), "hello, world\n")
        expectEqual(decode(Self.gzip + Array("<!-- -->".utf8), "gzip"), "hello, world\n")
        expectEqual(decode(Self.zlib + [1, 2, 3], "deflate"), "hello, world\n")
    }

    @Test func `content that ends early is truncated at every byte, and usable if it is known to be a beginning`() {
        for (content, coding) in [(Self.gzip, "gzip"), (Self.zlib, "deflate"), (Self.raw, "deflate")] {
            for count in 1..<content.count {
                let beginning = Array(content.prefix(count))
                let result = decode(beginning, coding)
                #expect(result.hasPrefix("truncated") || result.hasPrefix("damaged"), "\(coding) \(count)")
                #expect("hello, world\n".hasPrefix(decode(beginning, coding, isComplete: false)), "\(coding) \(count)")
            }
            expectEqual(decode([], coding), "")
        }
    }

    @Test func `a wrong checksum and bytes that are not encoded are damaged`() {
        var wrong = Self.gzip
        wrong[wrong.count - 8] ^= 1
        expectEqual(decode(wrong, "gzip"), "damaged(ContentCodings.ContentCodings.Coding.gzip)")
        expectEqual(decode(Self.text, "gzip"), "damaged(ContentCodings.ContentCodings.Coding.gzip)")
        expectEqual(decode(Self.text, "deflate"), "damaged(ContentCodings.ContentCodings.Coding.deflate)")
    }

    @Test func `a bomb ends with the limit, also in several layers`() throws {
        let zeros = [UInt8](repeating: 0x30, count: 64 << 20)
        var bomb = try encoded(zeros)
        let once = try ContentCodings(["gzip".utf8]).decode(bomb, limit: 65_536)
        expectEqual(once, [UInt8](repeating: 0x30, count: 65_536))
        bomb = try encoded(bomb)
        let twice = try ContentCodings(["gzip, gzip".utf8]).decode(bomb, limit: 65_536)
        expectEqual(twice.count, 65_536)
    }

    @Test func `the result is the first bytes, whatever the limit`() throws {
        let long = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) }
        let content = try encoded(long)
        for limit in [0, 1, 16_383, 16_384, 16_385, 39_999, 40_000, 40_001] {
            expectEqual(try ContentCodings(["gzip".utf8]).decode(content, limit: limit), Array(long.prefix(limit)), "\(limit)")
        }
    }

    // MARK: Piece by piece

    /// The decoded content, if it arrives in pieces and every other piece of the result is refused at first; and whether it is complete.
    private func stream(_ content: [UInt8], _ values: String..., pieces: Int) -> String {
        do {
            guard let decoder = try ContentDecoder(values) else { return "as it is" }
            var (result, isFull) = ([UInt8](), false)
            for start in stride(from: 0, to: content.count, by: pieces) {
                let piece = Array(content[start..<min(content.count, start + pieces)])
                var isTaken = false
                while !isTaken {
                    isTaken = try piece.withUnsafeBytes { bytes throws(ContentDecoder.Failure) in
                        try decoder.decode(bytes) { decoded in
                            isFull.toggle()
                            if !isFull { result += decoded }
                            return !isFull
                        }
                    }
                }
            }
            return String(decoding: result, as: UTF8.self) + (decoder.isComplete ? "" : " and more")
        } catch { return "\(error)" }
    }

    @Test(arguments: [1, 2, 3, 7, 1_000]) func `content that arrives in pieces is decoded, and its end is known`(_ size: Int)
        throws
    {
        let long = [UInt8](repeating: 0x61, count: 100_000) + Self.text
        let all = try [
            (Self.gzip, "gzip", Self.text), (Self.gzip, " X-GZip ", Self.text), (Self.zlib, "deflate", Self.text),
            (Self.raw, "deflate", Self.text), (encoded(long), "gzip", long), (encoded(encoded(long), 15), "gzip, deflate", long),
        ]
        for (content, coding, text) in all {
            let decoded = String(decoding: text, as: UTF8.self)
            expectEqual(stream(content, coding, pieces: size), decoded, "\(coding)")
            for cut in 1..<min(content.count, 30) {
                let result = stream(content.dropLast(cut), coding, pieces: size)
                #expect(result.hasSuffix(" and more"), "\(coding) \(cut): \(result.suffix(20))")
            }
            // libcurl permits up to four bytes behind data without a header.
            if coding != "deflate" || content != Self.raw {
                expectEqual(stream(content + [0x61], coding, pieces: size), "surplus", "\(coding)")
            }
        }
        expectEqual(stream(Self.gzip + Self.gzip, "gzip", pieces: size), "hello, world\nhello, world\n")
        expectEqual(stream(Self.raw + [1, 2, 3, 4], "deflate", pieces: size), "hello, world\n")
        expectEqual(stream([], "gzip", pieces: size), "")
        expectEqual(stream(Self.text, "identity", pieces: size), "as it is")
        expectEqual(stream(Self.text, "gzip", pieces: size), "damaged")
        expectEqual(stream(Self.text, "gzip, foo", pieces: size), "unsupported(\"foo\")")
        var damaged = Self.gzip
        damaged[25] ^= 1
        expectEqual(stream(damaged, "gzip", pieces: size), "damaged")
    }
}
