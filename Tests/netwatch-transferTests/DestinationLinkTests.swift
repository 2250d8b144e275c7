import Console
import Expectations
import Foundation
import Glibc
import NetworkLab
import Testing

@testable import netwatch_transfer

/// Destinations that are symbolic links.
@Suite(.requiresOtherUsers) struct DestinationLinkTests {
    private let folder: ScratchDirectory

    init() throws {
        folder = try ScratchDirectory()
        try Data("victim".utf8).write(to: URL(fileURLWithPath: folder.file("victim")))
        try #require(mkdir(folder.file("shared"), 0o777) == 0)
    }

    private func link(_ name: String, to target: String, owner: uid_t) throws {
        try #require(symlink(target, folder.file(name)) == 0 && lchown(folder.file(name), owner, owner) == 0)
    }

    private func prepare(_ name: String) throws -> String {
        var plan = try GetPlan(urls: ["http://h/file"], output: folder.file(name))
        try Destination.prepare(&plan)
        return plan.items[0].file
    }

    @Test(arguments: [mode_t(0o1777), 0o777, 0o770])
    func `a symbolic link of another user in a shared directory is refused`(_ mode: mode_t) throws {
        try #require(chmod(folder.file("shared"), mode) == 0)
        try link("shared/planted", to: folder.file("victim"), owner: 1)
        try link("shared/relative", to: "../victim", owner: 1)
        // The user's own link, which leads to the other user's.
        try link("own", to: "shared/planted", owner: geteuid())
        for name in ["shared/planted", "shared/relative", "own"] {
            let error = #expect(throws: Failure.self) { try prepare(name) }
            expectEqual(error?.code, ExitCode.cannotCreate)
            expectEqual(error?.message.contains("is a symbolic link of user 1; remove it"), true, "\(String(describing: error))")
        }
    }

    @Test func `a symbolic link of one's own, or in a directory not writable by others, is followed`() throws {
        try #require(chmod(folder.file("shared"), 0o1777) == 0)
        try link("shared/own", to: "../victim", owner: geteuid())
        try link("foreign", to: "victim", owner: 1)
        try link("broken", to: "none", owner: 1)
        #expect(try prepare("shared/own").hasSuffix("/victim"))
        #expect(try prepare("foreign").hasSuffix("/victim"))
        #expect(try prepare("broken").hasSuffix("/broken"))
    }
}
