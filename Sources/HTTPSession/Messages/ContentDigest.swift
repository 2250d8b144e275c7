public import FoundationEssentials

/// The digest of a complete file. Unlike a validator, it proves that the bytes are the expected ones.
public struct ContentDigest: Hashable, Sendable, Codable, CustomStringConvertible {
    /// A hash function that RFC 9530 lists as secure.
    @nonexhaustive public enum Algorithm: String, Hashable, Sendable, Codable, CaseIterable {
        case sha256 = "sha-256"
        case sha512 = "sha-512"

        /// The digest's length in bytes.
        public var length: Int {
            switch self {
            case .sha256: 32
            case .sha512: 64
            }
        }
    }

    /// The hash function.
    public let algorithm: Algorithm
    /// The bytes of the digest; their number is ``Algorithm/length``.
    public let bytes: Data

    /// Creates a digest; `nil` if its length does not match the algorithm.
    public init?(_ algorithm: Algorithm, _ bytes: Data) {
        guard bytes.count == algorithm.length else { return nil }
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// Creates a SHA-256 digest from 64 hexadecimal digits, as `sha256sum` prints it; `nil` for any
    /// other text.
    public init?(sha256 hexadecimal: String) {
        let digits = hexadecimal.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        guard digits.count == 64, hexadecimal.utf8.count == 64 else { return nil }
        algorithm = .sha256
        bytes = Data(stride(from: 0, to: 64, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
    }

    /// The digest in hexadecimal digits.
    public var hexadecimal: String { bytes.hexadecimal }

    /// The algorithm and the hexadecimal digits, such as `sha-256:9f86…`.
    public var description: String { "\(algorithm.rawValue):\(hexadecimal)" }

    private enum CodingKeys: CodingKey { case algorithm, bytes }

    /// Decodes a digest. It throws if the length does not match the algorithm.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let algorithm = try values.decode(Algorithm.self, forKey: .algorithm)
        guard let digest = ContentDigest(algorithm, try values.decode(Data.self, forKey: .bytes)) else {
            throw DecodingError.dataCorruptedError(
                forKey: .bytes, in: values, debugDescription: "not the length of the algorithm")
        }
        self = digest
    }
}

extension Data {
    /// The bytes in hexadecimal digits, two lower-case ones for each.
    var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
