import Testing

@testable import netwatch

@Suite struct SeparateProgramTests {
    @Test func `get, put and their help belong to the transfer program`() {
        #expect(arguments(["get", "-q", "x"], of: .transfer) == ["get", "-q", "x"])
        #expect(arguments(["help", "get"], of: .transfer) == ["get", "--help"])
        #expect(arguments(["help", "put"], of: .transfer) == ["put", "--help"])
    }

    @Test func `config and its help belong to the service`() {
        #expect(arguments(["config", "check", "--config", "x"], of: .service) == ["config", "check", "--config", "x"])
        #expect(arguments(["help", "config"], of: .service) == ["config", "--help"])
        #expect(arguments(["help", "config", "show"], of: .service) == ["config", "show", "--help"])
    }

    @Test func `other commands belong to this program`() {
        #expect(SeparateProgram.find(["help", "watch"]) == nil)
        #expect(SeparateProgram.find(["watch", "get:1"]) == nil)
        #expect(SeparateProgram.find([]) == nil)
    }

    @Test func `a separate program is searched beside this one and in libexec`() {
        #expect(
            SeparateProgram.transfer.places(besides: "/usr/bin/netwatch")
                == ["/usr/bin/netwatch-transfer", "/usr/bin/../libexec/netwatch/netwatch-transfer"])
    }

    @Test func `a name without a directory does not run a program in the working directory`() {
        #expect(SeparateProgram.transfer.places(besides: "netwatch") == [])
        #expect(SeparateProgram.transfer.places(besides: "") == [])
    }

    private func arguments(_ arguments: [String], of program: SeparateProgram) -> [String]? {
        SeparateProgram.find(arguments).flatMap { $0.program == program ? $0.arguments : nil }
    }
}
