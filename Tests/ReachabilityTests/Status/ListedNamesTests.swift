import Expectations
import Foundation
import Reachability
import Testing

/// The lists of names from which records and the JSON schema are made.
struct ListedNamesTests {
    private static let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The static members of a type in all source files, sorted: `public static let NAME = TYPE("RAW"…)`.
    private static func declared(_ type: String) throws -> [String] {
        let sources = FileManager.default.enumerator(
            at: repository.appending(path: "Sources/Reachability"), includingPropertiesForKeys: nil)
        var names: [String] = []
        while let file = sources?.nextObject() as? URL {
            guard file.pathExtension == "swift" else { continue }
            names += try String(contentsOf: file, encoding: .utf8)
                .matches(of: /public static let `?[A-Za-z0-9]+`? = ([A-Za-z.]+)\("([^"]+)"/)
                .filter { $0.1 == type || "Cause.\($0.1)" == type }.map { String($0.2) }
        }
        return names.sorted()
    }

    @Test func `every layer, cause code and reason is in the list of its type`() throws {
        expectEqual(try Self.declared("Cause.Layer"), Cause.Layer.allCases.map(\.rawValue).sorted())
        expectEqual(try Self.declared("Cause.Code"), Cause.Code.allCases.map(\.rawValue).sorted())
        expectEqual(try Self.declared("PathChangeReason"), PathChangeReason.allCases.map(\.rawValue).sorted())
        #expect(Cause.Code.allCases.count > 50 && Set(Cause.Code.allCases).count == Cause.Code.allCases.count)
    }

    @Test func `the documentation has the codes of each layer`() throws {
        let text = try String(contentsOf: Self.repository.appending(path: "docs/command-line.md"), encoding: .utf8)
        let rows =
            text.components(separatedBy: "| layer | codes |\n|---|---|\n").last?.prefix { $0 != "#" }.split(separator: "\n") ?? []
        let documented = rows.filter { $0.hasPrefix("|") }.map { $0.matches(of: /`([^`]+)`/).map { String($0.1) } }
        #expect(documented.compactMap(\.first) == Cause.Layer.allCases.map(\.rawValue))
        #expect(Cause.Code.byLayer.map(\.layer) == Cause.Layer.allCases)
        for (names, entry) in zip(documented, Cause.Code.byLayer) {
            #expect(names.dropFirst().sorted() == entry.codes.map(\.rawValue).sorted(), "\(entry.layer)")
        }
    }

    @Test func `each cause that the sources make is in the table of layers and codes`() throws {
        let known = Set(Cause.Code.byLayer.flatMap { entry in entry.codes.map { "\(entry.layer)/\($0)" } })
        let codes = Set(Cause.Code.allCases.map(\.rawValue))
        let sources = FileManager.default.enumerator(
            at: Self.repository.appending(path: "Sources"), includingPropertiesForKeys: nil)
        var made: Set<String> = []
        while let file = sources?.nextObject() as? URL {
            guard file.pathExtension == "swift" else { continue }
            for match in try String(contentsOf: file, encoding: .utf8).matches(of: /\(\.([a-z]+), \.([a-zA-Z]+)/) {
                let code = match.2.reduce(into: "") { $0 += $1.isUppercase ? "-\($1.lowercased())" : String($1) }
                // The same form has other values too, such as an address and its name.
                if codes.contains(code), Cause.Layer.allCases.contains(Cause.Layer(rawValue: String(match.1))) {
                    made.insert("\(match.1)/\(code)")
                }
            }
        }
        #expect(made.count > 30)
        #expect(made.subtracting(known) == [])
    }

    @Test func `a code or reason of a later version keeps its raw value`() {
        #expect(Cause.Code(rawValue: "moon-phase").rawValue == "moon-phase")
        #expect(PathChangeReason(rawValue: "moon-phase") == PathChangeReason(rawValue: "moon-phase"))
        #expect(PathChangeReason(rawValue: "resumed") == .resumed)
        #expect(PathChangeReason(rawValue: "moon-phase") != .resumed)
    }
}
