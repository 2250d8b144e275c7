import Expectations
import Foundation
import NetworkLab
import Testing

@testable import netwatch

@Suite struct SeparateProgramTests {
    @Test func `get, put, beat and their help belong to the transfer program`() {
        expectEqual(arguments(["get", "-q", "x"], of: .transfer), ["get", "-q", "x"])
        expectEqual(arguments(["help", "get"], of: .transfer), ["get", "--help"])
        expectEqual(arguments(["help", "put"], of: .transfer), ["put", "--help"])
        expectEqual(arguments(["beat", "a", "--", "get"], of: .transfer), ["beat", "a", "--", "get"])
        expectEqual(arguments(["help", "beat"], of: .transfer), ["beat", "--help"])
    }

    @Test func `config and its help belong to the service`() {
        expectEqual(arguments(["config", "check", "--config", "x"], of: .service), ["config", "check", "--config", "x"])
        expectEqual(arguments(["help", "config"], of: .service), ["config", "--help"])
        expectEqual(arguments(["help", "config", "show"], of: .service), ["config", "show", "--help"])
    }

    @Test func `other commands belong to this program`() {
        expectNil(SeparateCommandEntry.find(["help", "watch"]))
        expectNil(SeparateCommandEntry.find(["watch", "get:1"]))
        expectNil(SeparateCommandEntry.find([]))
    }

    @Test func `a separate program is searched beside this one and in libexec`() {
        expectEqual(
            SeparateProgram.transfer.places(besides: "/usr/bin/netwatch"),
            ["/usr/bin/netwatch-transfer", "/usr/bin/../libexec/netwatch/netwatch-transfer"])
    }

    @Test func `a name without a directory does not run a program in the working directory`() {
        expectEqual(SeparateProgram.transfer.places(besides: "netwatch"), [])
        expectEqual(SeparateProgram.transfer.places(besides: ""), [])
    }

    @Test(arguments: [("serve", true), ("history", false)])
    func `a service begins with SIGHUP blocked, so that none ends it before it has loaded its configuration`(
        command: String, isBlocked: Bool
    ) throws {
        let folder = try ScratchDirectory()
        try FileManager.default.copyItem(atPath: try Programs.netwatch, toPath: folder.file("netwatch"))
        try Data("#!/bin/sh\nexec grep SigBlk /proc/self/status\n".utf8).write(to: URL(filePath: folder.file("netwatch-service")))
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.file("netwatch-service"))
        let program = try Program([folder.file("netwatch"), command])
        let line = try program.remainingLines().joined()
        try expectEqual(program.wait(), 0, "\(program.ending)")
        // A mask in hexadecimal; SIGHUP is the lowest bit.
        let mask = try #require(UInt64(line.split(separator: "\t").last ?? "", radix: 16))
        expectEqual(mask & 1, (isBlocked ? 1 : 0))
    }

    private func arguments(_ arguments: [String], of program: SeparateProgram) -> [String]? {
        SeparateCommandEntry.find(arguments).flatMap { $0.program == program ? $0.arguments : nil }
    }
}
