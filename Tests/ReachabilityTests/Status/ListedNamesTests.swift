import Foundation
import Reachability
import Testing

/// The lists of names from which records and the JSON schema are made.
struct ListedNamesTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources/Reachability/Status")

    /// The static members of a type in a source file, in source order: `public static let NAME = TYPE("RAW"…)`.
    private static func declared(in file: String, of type: String) throws -> [String] {
        let text = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
        return text.matches(of: /public static let `?[A-Za-z0-9]+`? = ([A-Za-z.]+)\("([^"]+)"/)
            .filter { $0.1 == type }.map { String($0.2) }
    }

    @Test func `every layer, cause code and reason is in the list of its type, in source order`() throws {
        #expect(try Self.declared(in: "Cause.swift", of: "Layer") == Cause.Layer.allCases.map(\.rawValue))
        #expect(try Self.declared(in: "Cause+Codes.swift", of: "Cause.Code") == Cause.Code.allCases.map(\.rawValue))
        #expect(
            try Self.declared(in: "PathChangeReason.swift", of: "PathChangeReason") == PathChangeReason.allCases.map(\.rawValue))
        #expect(Cause.Code.allCases.count > 50 && Set(Cause.Code.allCases).count == Cause.Code.allCases.count)
    }

    @Test func `a code or reason of a later version keeps its raw value`() {
        #expect(Cause.Code(rawValue: "moon-phase").rawValue == "moon-phase")
        #expect(PathChangeReason(rawValue: "moon-phase") == PathChangeReason(rawValue: "moon-phase"))
        #expect(PathChangeReason(rawValue: "resumed") == .resumed)
        #expect(PathChangeReason(rawValue: "moon-phase") != .resumed)
    }
}
