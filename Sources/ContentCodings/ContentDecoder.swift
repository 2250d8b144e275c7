internal import CZlib
internal import Glibc

/// Decodes the content of one message, piece by piece, and knows whether it is complete.
///
/// It has an object of a C library, and belongs to one thread.
package final class ContentDecoder {
    /// The reason why content cannot be decoded.
    package enum Failure: Error, Hashable, Sendable {
        /// The coding with this name, or the number of codings, is not supported.
        case unsupported(String)
        case damaged
        /// Bytes follow the end of the coded data.
        case surplus
    }

    /// The codings that this process can decode, as Accept-Encoding names them. br and zstd have their own libraries, which libcurl loads: if libcurl
    /// is linked statically, or built without them, they are not there.
    package static let supported =
        ["deflate", "gzip"] + (Brotli.library == nil ? [] : ["br"]) + (Zstandard.library == nil ? [] : ["zstd"])

    private static let bufferSize = 16 << 10

    private let stages: [Stage]
    private let output: UnsafeMutableRawBufferPointer

    /// A decoder for the values of Content-Encoding; `nil` for content as it is.
    package init?(_ values: [String]) throws(Failure) {
        var stages: [Stage] = []
        for name in values.flatMap({ $0.split(separator: ",") }).map({ $0.drop { " \t".contains($0) } }) {
            let name = name.prefix { !" \t".contains($0) }.lowercased()
            let coding: any StreamCoding
            switch name {
            case "", "identity": continue
            // RFC 9110 section 8.4.1.3.
            case "gzip", "x-gzip": coding = Inflater(.gzip)
            case "deflate": coding = Inflater(.deflate)
            case "br":
                guard let decoder = Brotli() else { throw .unsupported(name) }
                coding = decoder
            case "zstd":
                guard let decoder = Zstandard() else { throw .unsupported(name) }
                coding = decoder
            default: throw .unsupported(name)
            }
            guard stages.count < ContentCodings.codingLimit else {
                throw .unsupported("more than \(ContentCodings.codingLimit) codings")
            }
            stages.append(Stage(coding, of: nil))
        }
        guard !stages.isEmpty else { return nil }
        // The last coding is decoded first.
        for (stage, source) in zip(stages, stages.dropFirst()) { stage.source = source }
        self.stages = stages
        // Last: an initializer that ends before all values are set runs no deinit.
        output = .allocate(byteCount: Self.bufferSize, alignment: 16)
    }

    deinit { output.deallocate() }

    /// Whether all coded data have ended. No bytes at all are complete: servers announce codings of empty content too.
    package var isComplete: Bool { stages.allSatisfy { !$0.hasBegun || $0.coding.isAtEnd } }

    /// Decodes the next bytes of the content.
    ///
    /// - Parameters:
    ///   - bytes: the bytes.
    ///   - take: gets each piece of the result, and returns whether it was taken. After `false` the bytes of the next call begin with the same bytes
    ///     again, and the same piece is its first one.
    /// - Returns: whether every piece was taken.
    /// - Throws: ``Failure``; then no more can be decoded.
    package func decode(_ bytes: UnsafeRawBufferPointer, _ take: (UnsafeRawBufferPointer) -> Bool) throws(Failure) -> Bool {
        guard let first = stages.last, let last = stages.first else { return true }
        // The bytes that were used before a piece was refused come again.
        first.input = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(used))
        defer { first.input = UnsafeRawBufferPointer(start: nil, count: 0) }
        while true {
            if refused == 0 { refused = try last.read(into: output) }
            guard refused > 0 else {
                used = 0
                return true
            }
            guard take(UnsafeRawBufferPointer(rebasing: output[..<refused])) else {
                used = bytes.count - first.input.count
                return false
            }
            refused = 0
        }
    }

    /// The bytes of the input that are decoded and not taken, and the size of the piece that they gave.
    private var (used, refused) = (0, 0)
}

/// One coding of several, and the bytes before it.
private final class Stage {
    let coding: any StreamCoding
    /// The stage whose result this one decodes.
    var source: Stage?
    var input = UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var hasBegun = false
    private lazy var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 16)
    private var hasBuffer = false

    init(_ coding: any StreamCoding, of source: Stage?) { (self.coding, self.source) = (coding, source) }

    deinit { if hasBuffer { buffer.deallocate() } }

    /// - Returns: the number of bytes of the result; 0 if more input is needed.
    func read(into output: UnsafeMutableRawBufferPointer) throws(ContentDecoder.Failure) -> Int {
        while true {
            if input.isEmpty, let source {
                hasBuffer = true
                let count = try source.read(into: buffer)
                input = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            }
            hasBegun = hasBegun || !input.isEmpty
            // Without input there may still be results of earlier input.
            guard hasBegun else { return 0 }
            let before = input.count
            let count = try coding.decode(&input, into: output)
            if count > 0 { return count }
            // All input is used, or the decoder needs no more of it and gives nothing.
            if input.isEmpty, source == nil || before == 0 { return 0 }
            if input.count == before { throw .damaged }
        }
    }
}

/// The stream of one coding in a C library.
private protocol StreamCoding: AnyObject {
    /// Whether the data have ended, and no more need to follow.
    var isAtEnd: Bool { get }
    /// Decodes as much of `input` as `output` has room for, and removes it from `input`.
    ///
    /// - Returns: the number of bytes of the result.
    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) throws(ContentDecoder.Failure)
        -> Int
}

private final class Inflater: StreamCoding {
    enum Format { case gzip, deflate }

    private let format: Format
    private let stream: UnsafeMutablePointer<z_stream>
    private(set) var isAtEnd = false
    /// The first bytes of deflate, which show whether it has the header of zlib; `nil` behind them.
    private var beginning: [UInt8]?
    /// The bytes that may follow deflate data without a header, as some servers send a checksum of their own.
    private var permittedSurplus = 0

    init(_ format: Format) {
        self.format = format
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        beginning = format == .deflate ? [] : nil
        // 32 KiB of window. With 32 more, the header of gzip or zlib: some servers name the one and send the other.
        let started = inflateInit2_(stream, format == .gzip ? 47 : 15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        // Swift ends a process too if an allocation fails.
        precondition(started == Z_OK, "zlib cannot begin to decode: \(started)")
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) throws(ContentDecoder.Failure)
        -> Int
    {
        if var beginning {
            while beginning.count < 2, let byte = input.popFirst(rebasing: ()) { beginning.append(byte) }
            self.beginning = beginning
            guard beginning.count == 2 else { return 0 }
            self.beginning = nil
            if !Decoder.hasZlibHeader(beginning) {
                inflateReset2(stream, -15)
                permittedSurplus = 4
            }
            let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: 2, alignment: 1)
            defer { copy.deallocate() }
            copy.copyBytes(from: beginning)
            var first = UnsafeRawBufferPointer(copy)
            let count = try inflateNext(&first, into: output)
            if count > 0 { return count }
        }
        return try inflateNext(&input, into: output)
    }

    private func inflateNext(
        _ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(ContentDecoder.Failure) -> Int {
        if isAtEnd {
            guard let first = input.first else { return 0 }
            // A further member of gzip (RFC 1952 section 2.2). What follows its first byte is checked by zlib.
            if format == .gzip, first == 0x1F {
                inflateReset(stream)
                isAtEnd = false
            } else if input.count <= permittedSurplus {
                permittedSurplus -= input.count
                input = UnsafeRawBufferPointer(start: nil, count: 0)
                return 0
            } else {
                throw .surplus
            }
        }
        let available = min(input.count, 1 << 30)
        stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(available)
        stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(output.count)
        let status = inflate(stream, Z_NO_FLUSH)
        input = UnsafeRawBufferPointer(rebasing: input.dropFirst(available - Int(stream.pointee.avail_in)))
        let count = output.count - Int(stream.pointee.avail_out)
        stream.pointee.next_in = nil
        switch status {
        case Z_OK, Z_BUF_ERROR: break
        case Z_STREAM_END: isAtEnd = true
        case Z_MEM_ERROR: preconditionFailure("no memory left to decode content")
        // zlib has checked the bytes before the damaged ones.
        default: if count == 0 { throw .damaged }
        }
        return count
    }
}

/// The functions of a library that the process has loaded already. Their types are part of its binary interface.
private func symbol<Function>(_ name: String, as type: Function.Type) -> Function? {
    dlsym(nil, name).map { unsafeBitCast($0, to: type) }
}

/// RFC 7932 (brotli/decode.h).
private final class Brotli: StreamCoding {
    struct Library: Sendable {
        typealias Create =
            @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) ->
            UnsafeMutableRawPointer?
        typealias Decompress =
            @convention(c) (
                UnsafeMutableRawPointer, UnsafeMutablePointer<Int>, UnsafeMutablePointer<UnsafeRawPointer?>,
                UnsafeMutablePointer<Int>, UnsafeMutablePointer<UnsafeMutableRawPointer?>, UnsafeMutablePointer<Int>?
            ) -> Int32
        typealias Destroy = @convention(c) (UnsafeMutableRawPointer) -> Void

        let create: Create
        let decompress: Decompress
        let destroy: Destroy
    }

    static let library: Library? = {
        guard let create = symbol("BrotliDecoderCreateInstance", as: Library.Create.self),
            let decompress = symbol("BrotliDecoderDecompressStream", as: Library.Decompress.self),
            let destroy = symbol("BrotliDecoderDestroyInstance", as: Library.Destroy.self)
        else { return nil }
        return Library(create: create, decompress: decompress, destroy: destroy)
    }()

    private let library: Library
    private let state: UnsafeMutableRawPointer
    private(set) var isAtEnd = false

    init?() {
        guard let library = Self.library, let state = library.create(nil, nil, nil) else { return nil }
        (self.library, self.state) = (library, state)
    }

    deinit { library.destroy(state) }

    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) throws(ContentDecoder.Failure)
        -> Int
    {
        if isAtEnd {
            guard input.isEmpty else { throw .surplus }
            return 0
        }
        var (available, next) = (input.count, input.baseAddress)
        var (room, place) = (output.count, output.baseAddress)
        let result = library.decompress(state, &available, &next, &room, &place, nil)
        input = UnsafeRawBufferPointer(rebasing: input.dropFirst(input.count - available))
        // BROTLI_DECODER_RESULT_ERROR, _SUCCESS; the others ask for more input or room.
        switch result {
        case 0: throw .damaged
        case 1: isAtEnd = true
        default: break
        }
        return output.count - room
    }
}

/// RFC 8878 (zstd.h).
private final class Zstandard: StreamCoding {
    struct Library: Sendable {
        typealias Create = @convention(c) () -> UnsafeMutableRawPointer?
        typealias Decompress = @convention(c) (UnsafeMutableRawPointer, UnsafeMutableRawPointer, UnsafeMutableRawPointer) -> Int
        typealias IsError = @convention(c) (Int) -> UInt32
        typealias Free = @convention(c) (UnsafeMutableRawPointer) -> Int

        let create: Create
        let decompress: Decompress
        let isError: IsError
        let free: Free
    }

    static let library: Library? = {
        guard let create = symbol("ZSTD_createDStream", as: Library.Create.self),
            let decompress = symbol("ZSTD_decompressStream", as: Library.Decompress.self),
            let isError = symbol("ZSTD_isError", as: Library.IsError.self),
            let free = symbol("ZSTD_freeDStream", as: Library.Free.self)
        else { return nil }
        return Library(create: create, decompress: decompress, isError: isError, free: free)
    }()

    /// `ZSTD_inBuffer` and `ZSTD_outBuffer`.
    private struct Buffer {
        var bytes: UnsafeRawPointer?
        var size: Int
        var position = 0
    }

    private let library: Library
    private let state: UnsafeMutableRawPointer
    /// Whether a frame has ended. Another one may follow.
    private(set) var isAtEnd = false

    init?() {
        guard let library = Self.library, let state = library.create() else { return nil }
        (self.library, self.state) = (library, state)
    }

    deinit { _ = library.free(state) }

    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) throws(ContentDecoder.Failure)
        -> Int
    {
        // Otherwise another frame would begin.
        if isAtEnd, input.isEmpty { return 0 }
        var from = Buffer(bytes: input.baseAddress, size: input.count)
        var to = Buffer(bytes: UnsafeRawPointer(output.baseAddress), size: output.count)
        let result = library.decompress(state, &to, &from)
        guard library.isError(result) == 0 else { throw .damaged }
        input = UnsafeRawBufferPointer(rebasing: input.dropFirst(from.position))
        isAtEnd = result == 0
        return to.position
    }
}

extension UnsafeRawBufferPointer {
    /// Removes the first byte.
    fileprivate mutating func popFirst(rebasing: ()) -> UInt8? {
        guard let byte = first else { return nil }
        self = UnsafeRawBufferPointer(rebasing: dropFirst())
        return byte
    }
}
