import Console
import Expectations
import Testing

@testable import netwatch_service

@Suite struct ConnectOptionTests {
    @Test(arguments: [
        (["history", "--connect"], ["history", "--connect", ""]),
        (["history", "--connect", "--json"], ["history", "--connect", "", "--json"]),
        (["history", "--connect", "fake.sock", "--json"], ["history", "--connect", "fake.sock", "--json"]),
        (["report", "--connect", "./fake.sock"], ["report", "--connect", "./fake.sock"]),
        (["history", "--json"], ["history", "--json"]),
    ])
    func `a command without operands takes each text as the value`(arguments: [String], completed: [String]) {
        expectEqual(OptionalValue.complete(arguments, option: "--connect", hasOperands: false), completed)
    }

    @Test func `before an operand, only a path with a slash is the value`() {
        func complete(_ value: String) -> [String] {
            OptionalValue.complete(["watch", "--connect", value], option: "--connect", hasOperands: true)
        }
        expectEqual(complete("db.example:5432"), ["watch", "--connect", "", "db.example:5432"])
        expectEqual(complete("./fake.sock"), ["watch", "--connect", "./fake.sock"])
    }

    @Test(arguments: ["history", "report"]) func `a socket in the working directory is asked`(command: String) {
        let failure = Failure(69, "no-such.sock: no service is running; start it with 'netwatch serve'")
        #expect(throws: failure) { try ServiceCommands.run([command, "--connect", "no-such.sock"]) }
    }
}
