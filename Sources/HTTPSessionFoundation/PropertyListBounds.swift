import Foundation
internal import HTTPSession

/// The check that refuses property lists with which Foundation's readers would crash or use all memory.
///
/// Foundation on Linux (Swift 6.3) crashes on binary lists with sets. It expands a list of forty objects, each of which
/// references the next twice, into 2^40 objects. Its `PropertyListDecoder` recurses without limit. Needed until Foundation
/// fixes these.
enum PropertyListBounds {
    /// The limits of expanded objects and of nested containers, far above what servers send.
    static let maximumObjects = 1_000_000
    static let maximumDepth = 512

    /// Throws if Foundation must not read the list.
    static func check(_ data: Data) throws { _ = try read(data, options: []) }

    /// Reads a binary list or an XML list.
    static func read(_ data: Data, options: PropertyListSerialization.ReadOptions) throws -> sending Any {
        if data.starts(with: Data("bplist".utf8)) {
            var walk = try BinaryWalk(data)
            _ = try walk.measure(walk.top, depth: 0)
        } else if !looksLikeXML(data) {
            throw neither
        }
        var format = PropertyListSerialization.PropertyListFormat.xml
        let object = try PropertyListSerialization.propertyList(from: data, options: options, format: &format)
        guard format != .openStep else { throw neither }
        return object
    }

    /// Returns whether the first byte that is not a space, a byte order mark or half of a UTF-16 unit begins a tag. Foundation
    /// would read almost any other text as a list in OpenStep's format.
    private static func looksLikeXML(_ data: Data) -> Bool {
        let before: Set<UInt8> = [0x00, 0x09, 0x0A, 0x0D, 0x20, 0xEF, 0xBB, 0xBF, 0xFE, 0xFF]
        return data.first { !before.contains($0) } == UInt8(ascii: "<")
    }

    private static var neither: HTTPSessionError {
        HTTPSessionError(.cannotDecodeContent, "the body is not a property list, neither binary nor XML")
    }

    /// A traversal of a binary list's objects that reads only markers and references. Format: CFBinaryPList.c in Foundation.
    private struct BinaryWalk {
        let top: Int
        private let bytes: [UInt8]
        private let offsetSize: Int
        private let referenceSize: Int
        private let count: Int
        private let offsetTable: Int
        private var measured: [Int: Extent] = [:]
        private var open: Set<Int> = []

        /// The size of an expanded object.
        struct Extent {
            var objects = 1
            var depth = 0
        }

        init(_ data: Data) throws {
            bytes = Array(data)
            let trailer = bytes.count - 32
            guard trailer >= 8 else { throw Self.broken }
            offsetSize = Int(bytes[trailer + 6])
            referenceSize = Int(bytes[trailer + 7])
            guard (1...8).contains(offsetSize), (1...8).contains(referenceSize) else { throw Self.broken }
            count = try Self.integer(bytes[(trailer + 8)..<(trailer + 16)])
            top = try Self.integer(bytes[(trailer + 16)..<(trailer + 24)])
            offsetTable = try Self.integer(bytes[(trailer + 24)..<(trailer + 32)])
            guard offsetTable <= trailer, count <= (trailer - offsetTable) / offsetSize else { throw Self.broken }
        }

        mutating func measure(_ object: Int, depth: Int) throws -> Extent {
            if let extent = measured[object] {
                guard depth + extent.depth <= maximumDepth else { throw Self.tooLarge }
                return extent
            }
            guard depth <= maximumDepth else { throw Self.tooLarge }
            guard open.insert(object).inserted else {
                throw HTTPSessionError(.cannotDecodeContent, "the property list contains itself")
            }
            var extent = Extent()
            for child in try children(of: object) {
                let inner = try measure(child, depth: depth + 1)
                extent.objects += inner.objects
                extent.depth = max(extent.depth, inner.depth + 1)
                guard extent.objects <= maximumObjects else { throw Self.tooLarge }
            }
            open.remove(object)
            measured[object] = extent
            return extent
        }

        /// Returns the objects that `object` references; none for a leaf. Dictionary keys must be strings.
        private func children(of object: Int) throws -> [Int] {
            guard object < count else { throw Self.broken }
            let entry = offsetTable + object * offsetSize
            let offset = try Self.integer(bytes[entry..<(entry + offsetSize)])
            guard offset >= 8, offset < offsetTable else { throw Self.broken }
            let isDictionary: Bool
            switch bytes[offset] >> 4 {
            // Simple values, integers, reals, dates, data and strings: Foundation checks their lengths.
            case 0x0...0x6: return []
            case 0xA: isDictionary = false
            case 0xD: isDictionary = true
            default:
                throw HTTPSessionError(
                    .cannotDecodeContent, "the property list has a set or a reference, which are not supported")
            }
            let (length, first) = try containerLength(at: offset)
            let total = isDictionary ? length * 2 : length
            guard total <= (offsetTable - first) / referenceSize else { throw Self.broken }
            let references = try (0..<total).map { place in
                try Self.integer(bytes[(first + place * referenceSize)..<(first + (place + 1) * referenceSize)])
            }
            if isDictionary { try references.prefix(length).forEach(requireString) }
            return references
        }

        private func requireString(_ object: Int) throws {
            guard object < count else { throw Self.broken }
            let entry = offsetTable + object * offsetSize
            let offset = try Self.integer(bytes[entry..<(entry + offsetSize)])
            guard offset < offsetTable, (0x5...0x6).contains(bytes[offset] >> 4) else { throw Self.broken }
        }

        /// Returns the number of elements and the offset of the first. A short count of 15 means that the number follows as an
        /// integer object.
        private func containerLength(at offset: Int) throws -> (Int, Int) {
            let short = Int(bytes[offset] & 0xF)
            guard short == 0xF else { return (short, offset + 1) }
            guard offset + 1 < offsetTable, bytes[offset + 1] >> 4 == 0x1 else { throw Self.broken }
            let size = 1 << Int(bytes[offset + 1] & 0xF)
            guard size <= 8, offset + 2 + size <= offsetTable else { throw Self.broken }
            let length = try Self.integer(bytes[(offset + 2)..<(offset + 2 + size)])
            guard length <= bytes.count else { throw Self.broken }
            return (length, offset + 2 + size)
        }

        private static func integer(_ bytes: ArraySlice<UInt8>) throws -> Int {
            let value = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            guard let value = Int(exactly: value) else { throw broken }
            return value
        }

        private static var broken: HTTPSessionError {
            HTTPSessionError(.cannotDecodeContent, "the binary property list is broken")
        }

        private static var tooLarge: HTTPSessionError {
            HTTPSessionError(
                .cannotDecodeContent,
                "the property list has more than \(maximumObjects) objects or is more than \(maximumDepth) deep")
        }
    }
}
