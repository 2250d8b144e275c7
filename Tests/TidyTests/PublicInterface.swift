import Foundation

/// The public interface of all library products, a line for each symbol and for the conformances of each type, from the compiler's symbol graphs.
struct PublicInterface {
    static let document = "docs/interface.txt"

    /// Sorted: `PRODUCT PATH | DECLARATION`, and `PRODUCT PATH : CONFORMANCES`.
    let lines: [String]

    /// - Parameter graphs: a folder of symbol graphs, `PRODUCT.symbols.json` and `PRODUCT@EXTENDED.symbols.json`.
    /// - Throws: what reading or decoding a graph throws.
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
            guard relationship.kind == "conformsTo", let path = paths[relationship.source] else { return }
            let target = relationship.targetFallback ?? paths[relationship.target] ?? relationship.target
            let name = target[
                target.index(target.lastIndex(of: ".") ?? target.startIndex, offsetBy: target.contains(".") ? 1 : 0)...]
            if !implied.contains(name) { found[path, default: []].insert(name) }
        }
        return symbols + conformances.map { path, names in "\(product) \(path) : \(names.sorted().joined(separator: ", "))" }
    }

    /// Every copyable type has them.
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
