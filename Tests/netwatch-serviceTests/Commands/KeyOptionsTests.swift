import ArgumentParser
import Console
import Expectations
import Testing

@testable import netwatch_service

/// The options of the command line that the table of keys has.
@Suite struct KeyOptionsTests {
    @Test(arguments: Configuration.entries.filter { $0.option != nil })
    func `the option of a key sets it, and is in the help of serve`(entry: ConfigurationEntry) throws {
        let option = "--\(entry.optionName)"
        let sources = try ConfigurationOptions.parse([option, "/-x", "a:1"]).sources()
        expectEqual(sources.options.map(\.option), [option])
        expectEqual(sources.options.map(\.key), [entry.name])
        expectEqual(sources.options.map(\.value), ["/-x"])
        expectEqual(sources.targets, ["a:1"])
        let help = ServeCommand.helpMessage(columns: 200)
        #expect(help.contains("\(option) <\(entry.option?.valueName ?? "")>"), "\(help)")
        #expect(help.contains(entry.sentence), "\(help)")
    }

    @Test func `without options, no key is set`() throws {
        expectEqual(try ConfigurationOptions.parse([]).sources().options.count, 0)
    }

    @Test func `a relative path is relative to the current directory, and an empty one is refused`() throws {
        let value = try #require(try ConfigurationOptions.parse(["--state", "data"]).sources().options.first?.value)
        #expect(value.hasPrefix("/") && value.hasSuffix("/data"), "\(value)")
        #expect(throws: Failure.usage("--socket ''", "names no socket")) {
            try ConfigurationOptions.parse(["--socket", ""]).sources()
        }
    }
}
