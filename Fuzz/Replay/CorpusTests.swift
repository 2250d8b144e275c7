import Expectations
import FoundationEssentials
import Testing

/// The inputs of the corpora, in pieces and at once. `make fuzz` looks for further ones.
@Suite struct CorpusTests {
    private static let corpora = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Corpora")

    /// The name of each driver, with the name of each of its inputs.
    private static func inputs(of driver: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: corpora.appending(path: driver).path).sorted()
    }

    @Test(arguments: FuzzDriver.all.map(\.name))
    func `a parser keeps its rules for each input of its corpus`(driver: String) throws {
        let parser = try #require(FuzzDriver.all.first { $0.name == driver })
        let names = try Self.inputs(of: driver)
        #expect(!names.isEmpty)
        for name in names {
            let input = try Data(contentsOf: Self.corpora.appending(path: "\(driver)/\(name)"))
            #expect(throws: Never.self, "Fuzz/Corpora/\(driver)/\(name)") { try parser.run(Array(input)) }
        }
    }

    @Test func `each corpus has a driver`() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpora.path).filter { !$0.hasSuffix(".dict") }
        expectEqual(Set(folders), Set(FuzzDriver.all.map(\.name)))
    }

    @Test func `the pieces of an input are the complete input, and depend on it alone`() {
        let input = Array("HTTP/1.1 200 OK\r\n\r\n".utf8)
        var (random, same) = (randomNumbers(for: input), randomNumbers(for: input))
        let parts = pieces(of: input, &random)
        expectEqual(parts.flatMap { Array($0) }, input)
        expectEqual(parts, pieces(of: input, &same))
    }

    @Test func `a broken rule is thrown with its place`() {
        let error = #expect(throws: BrokenRule.self) { try FuzzDriver.require(1 > 2, "one is more than two") }
        expectEqual(error?.description.hasSuffix(": one is more than two"), true)
        expectEqual(error?.description.contains("CorpusTests.swift:"), true)
    }
}
