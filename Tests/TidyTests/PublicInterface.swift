import Foundation
import Glibc

/// The public interface of all library products, from the compiler's symbol graphs: one line for each symbol, and one for the
/// conformances of each type.
struct PublicInterface {
    static let document = "docs/interface.txt"

    /// The sorted lines: `PRODUCT PATH | DECLARATION`, and `PRODUCT PATH : CONFORMANCES`.
    let lines: [String]

    /// - Parameter graphs: a folder of symbol graphs, `PRODUCT.symbols.json` and `PRODUCT@EXTENDED.symbols.json`.
    /// - Throws: the error of reading or decoding a graph.
    init(graphs: URL) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: graphs.path).filter { $0.hasSuffix(".symbols.json") }
        let lines = try names.flatMap { name in
            let graph = try JSONDecoder().decode(Graph.self, from: Data(contentsOf: graphs.appendingPathComponent(name)))
            return Self.lines(of: graph, product: name.prefix { $0 != "." && $0 != "@" })
        }
        self.lines = Set(lines).sorted()
    }

    /// The names of the library products in a package's manifest.
    static func products(_ manifest: SourceFile) -> [String] {
        manifest.lines.compactMap { $0.firstMatch(of: /\.library\(name: "([^"]+)"/).map { String($0.1) } }
    }

    private static func lines(of graph: Graph, product: Substring) -> [String] {
        let symbols = graph.symbols.map { symbol in
            let declaration = symbol.declarationFragments.map(\.spelling).joined().split(whereSeparator: \.isWhitespace)
            return "\(product) \(symbol.path) | \(declaration.joined(separator: " "))"
        }
        let paths = Dictionary(graph.symbols.map { ($0.identifier.precise, $0.path) }) { first, _ in first }
        let conformances = graph.relationships.reduce(into: [String: Set<Substring>]()) { found, relationship in
            guard relationship.kind == "conformsTo" else { return }
            // A type of another module is no symbol of the graph if this product only adds a conformance to the type.
            let path = paths[relationship.source] ?? demangledPath(relationship.source) ?? relationship.source
            let target =
                relationship.targetFallback ?? paths[relationship.target] ?? demangledPath(relationship.target)
                ?? relationship.target
            let name = target[
                target.index(target.lastIndex(of: ".") ?? target.startIndex, offsetBy: target.contains(".") ? 1 : 0)...]
            if !implied.contains(name) { found[path, default: []].insert(name) }
        }
        return symbols + conformances.map { path, names in "\(product) \(path) : \(names.sorted().joined(separator: ", "))" }
    }

    /// Returns the path of a Swift type without its module, from the type's precise identifier: `JSONDecoder` for
    /// `s:20FoundationEssentials11JSONDecoderC`. Returns `nil` for the identifier of another language or of no type.
    private static func demangledPath(_ identifier: String) -> String? {
        guard identifier.hasPrefix("s:") else { return nil }
        let mangled = "$s" + identifier.dropFirst(2)
        guard let text = demangle(mangled, mangled.utf8.count, nil, nil, 0) else { return nil }
        defer { free(text) }
        let path = String(cString: text)
        return path.firstIndex(of: ".").map { String(path[path.index(after: $0)...]) }
    }

    /// The conformances that every copyable type has.
    private static let implied: Set<Substring> = ["Copyable", "Escapable", "SendableMetatype", "BitwiseCopyable"]

    /// The parts of a symbol graph that are read (swift-docc-symbolkit's format).
    private struct Graph: Decodable {
        struct Symbol: Decodable {
            struct Identifier: Decodable { var precise: String }
            struct Fragment: Decodable { var spelling: String }

            var identifier: Identifier
            var pathComponents: [String]
            var declarationFragments: [Fragment]

            var path: String { pathComponents.joined(separator: ".") }
        }
        struct Relationship: Decodable {
            var kind: String
            var source: String
            var target: String
            var targetFallback: String?
        }

        var symbols: [Symbol]
        var relationships: [Relationship]
    }
}

/// The demangler of Swift's runtime library (swift/Demangling/Demangle.h). The caller frees the result.
@_silgen_name("swift_demangle")
private func demangle(
    _ name: UnsafePointer<CChar>, _ length: Int, _ buffer: UnsafeMutablePointer<CChar>?, _ size: UnsafeMutablePointer<Int>?,
    _ flags: UInt32
) -> UnsafeMutablePointer<CChar>?
