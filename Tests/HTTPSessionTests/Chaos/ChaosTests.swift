import Expectations
import NetworkLab
import Testing

/// The short form of `make chaos`.
@Suite(.requiresNamespaces, .timeLimit(.minutes(20))) struct ChaosTests {
    @Test func `every transfer completes although networks, servers and processes fail`() throws {
        // On a busy machine more transfers run at the moment of a failure.
        let program = try Program([
            try Programs.built("laboratory"), "chaos", "--downloads", "22", "--uploads", "12", "--mebibytes", "16", "--kills",
            "12", "--flaps",
            "20", "--rate", "500000", "--ratio", "150",
        ])
        let lines = try program.remainingLines(within: .seconds(900))
        print(lines.joined(separator: "\n"))
        try expectEqual(program.wait(), 0, "\(program.ending)")
        #expect(lines.first?.hasPrefix("chaos: seed ") == true)
    }
}
