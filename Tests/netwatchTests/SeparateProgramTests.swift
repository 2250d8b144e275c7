import Foundation
import NetworkLab
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
        #expect(try program.wait() == 0, "\(program.ending)")
        // A mask in hexadecimal; SIGHUP is the lowest bit.
        let mask = try #require(UInt64(line.split(separator: "\t").last ?? "", radix: 16))
        #expect(mask & 1 == (isBlocked ? 1 : 0))
    }

    private func arguments(_ arguments: [String], of program: SeparateProgram) -> [String]? {
        SeparateProgram.find(arguments).flatMap { $0.program == program ? $0.arguments : nil }
    }
}
