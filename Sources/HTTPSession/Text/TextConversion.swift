internal import CLinux
internal import FoundationEssentials
internal import Glibc

/// The conversion of text between character sets by the C library (iconv(3)).
enum TextConversion {
    enum Failure: Error {
        /// The C library has no table for the character set. Some systems ship the tables in a separate package.
        case unknownCharset
        /// The bytes are not valid text of the character set.
        case invalidBytes
    }

    /// The UTF-8 bytes of `data`, which is text in the character set `name`.
    static func utf8(_ data: Data, from name: String) throws(Failure) -> [UInt8] {
        try convert(Array(data), from: name, to: "UTF-8")
    }

    /// `text` in ASCII: letters without their marks, ligatures as their letters. Characters without an ASCII counterpart are
    /// removed.
    static func ascii(_ text: String) -> String {
        // The conversion table belongs to a locale. C.UTF-8 has it and is part of the C library.
        guard let locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil) else { return text.filter(\.isASCII) }
        let former = uselocale(locale)
        defer {
            uselocale(former)
            freelocale(locale)
        }
        return text.unicodeScalars.reduce(into: "") { result, scalar in
            guard !scalar.isASCII else { return result.unicodeScalars.append(scalar) }
            let converted = try? convert(Array(String(scalar).utf8), from: "UTF-8", to: "ASCII//TRANSLIT")
            // iconv writes a question mark for a character that the table lacks.
            guard let converted, !converted.contains(UInt8(ascii: "?")) else { return }
            result += String(decoding: converted, as: UTF8.self)
        }
    }

    private static func convert(_ input: [UInt8], from source: String, to target: String) throws(Failure) -> [UInt8] {
        guard let descriptor = iconv_open(target, source), descriptor != iconv_t(bitPattern: -1) else { throw .unknownCharset }
        defer { iconv_close(descriptor) }
        var bytes = input
        var output: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 * 1024)
        var (consumed, isFlushing) = (0, false)
        while true {
            var (remaining, free, code) = (bytes.count - consumed, chunk.count, Int32(0))
            let isDone = bytes.withUnsafeMutableBytes { source in
                chunk.withUnsafeMutableBytes { target in
                    var from = source.baseAddress.map { $0.advanced(by: consumed).assumingMemoryBound(to: CChar.self) }
                    var to = target.baseAddress?.assumingMemoryBound(to: CChar.self)
                    // Without input, iconv writes the bytes that return the output to its initial state (iconv(3)).
                    let result =
                        isFlushing ? iconv(descriptor, nil, nil, &to, &free) : iconv(descriptor, &from, &remaining, &to, &free)
                    code = errno
                    return result != -1
                }
            }
            consumed = bytes.count - remaining
            output += chunk[..<(chunk.count - free)]
            if !isDone {
                // E2BIG: the chunk is full. EILSEQ and EINVAL: the text is invalid, or ends in the middle of a character.
                guard code == E2BIG, free < chunk.count else { throw .invalidBytes }
            } else if isFlushing {
                return output
            } else {
                isFlushing = true
            }
        }
    }
}
