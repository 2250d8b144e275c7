import ArgumentParser
import Console
import Expectations
import Foundation
import Glibc
import NetworkLab
import Testing

@testable import Reachability
@testable import netwatch

@Suite struct TargetOptionsTests {
    private func failure(_ arguments: [String]) throws -> Failure {
        let options = try TargetOptions.parse(arguments)
        return try #require(throws: Failure.self) { try options.applied(to: ProbeSettings()) }
    }

    @Test func `a file of certificates or lists that cannot be used has the exit code of its fault`() throws {
        let directory = try Directory()
        let path = "\(directory.path)/file.pem"
        for option in ["--cafile", "--crlfile"] {
            try expectEqual(failure([option, path]).code, ExitCode.noInput)
            try expectEqual(failure([option, directory.path]).code, ExitCode.noInput)
            for text in ["", "garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
                try Data(text.utf8).write(to: URL(fileURLWithPath: path))
                let failure = try failure([option, path])
                #expect(failure.code == ExitCode.badData && failure.message.hasPrefix("\(option) \(path)"), "\(failure)")
            }
            try FileManager.default.removeItem(atPath: path)
        }
        // A privileged user may read every file.
        for number in [EACCES, EPERM] {
            let error = TLSProbeSettings.FileError("file: cannot be read", systemError: number)
            expectEqual(Failure("--cafile", error).code, ExitCode.notPermitted)
        }
    }
}
