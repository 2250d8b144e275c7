import Expectations
import Foundation
import NetworkLab
import Testing

@testable import netwatch_transfer

/// The note of an upload's URL, which is valid as long as the file does not change.
@Suite struct UploadNoteTests {
    private let folder: ScratchDirectory
    private let place: URL

    init() throws {
        folder = try ScratchDirectory()
        place = try #require(URL(string: "http://h/uploads/1"))
    }

    private func write(_ name: String, _ text: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: folder.file(name)), options: .atomic)
    }

    private func note(of name: String) throws -> UploadNote {
        let plan = try PutPlan(file: folder.file(name), url: "http://h/uploads")
        return try #require(try UploadNote(plan, environment: ["XDG_STATE_HOME": folder.file("state")]))
    }

    @Test func `a file replaced within a run restarts its upload`() async throws {
        try write("film", "one")
        let note = try note(of: "film")
        expectNil(note.placeOfCurrentFile())
        note.note(place, .tus)
        #expect(note.placeOfCurrentFile() == place && !note.hasChanged)
        try write("film", "two")
        #expect(note.hasChanged)
        #expect(note.placeOfCurrentFile() == nil && !note.hasChanged)
        await note.waitUntilWritten()
    }

    @Test func `a symbolic link to another file restarts the upload`() async throws {
        try write("one", "one")
        try write("two", "two")
        try FileManager.default.createSymbolicLink(atPath: folder.file("film"), withDestinationPath: folder.file("one"))
        let note = try note(of: "film")
        note.note(place, .draft)
        try FileManager.default.removeItem(atPath: folder.file("film"))
        try FileManager.default.createSymbolicLink(atPath: folder.file("film"), withDestinationPath: folder.file("two"))
        expectNil(note.placeOfCurrentFile())
        await note.waitUntilWritten()
    }

    @Test func `a noted upload is known to the next run`() async throws {
        try write("film", "one")
        do {
            let first = try note(of: "film")
            first.note(place, .tus)
            await first.waitUntilWritten()
            first.close()
        }
        let second = try note(of: "film")
        expectEqual(second.known?.dialect, .tus)
        expectEqual(second.placeOfCurrentFile(), place)
        second.forget()
        #expect(!second.hasPlace)
    }

    // MARK: Notes of other users

    enum Plant: CaseIterable {
        case hardLink, symbolicLink, groupWritable, othersWritable
    }

    @Test(arguments: Plant.allCases) func `a planted upload note is neither used nor modified`(_ plant: Plant) async throws {
        try write("film", "one")
        do {
            let first = try note(of: "film")
            first.note(place, .tus)
            await first.waitUntilWritten()
            first.close()
        }
        let state = folder.file("state/netwatch/uploads")
        let path = "\(state)/\(try #require(try FileManager.default.contentsOfDirectory(atPath: state).first))"
        let files = FileManager.default
        switch plant {
        case .hardLink: try files.linkItem(atPath: path, toPath: folder.file("link"))
        case .symbolicLink:
            try files.moveItem(atPath: path, toPath: folder.file("victim"))
            try files.createSymbolicLink(atPath: path, withDestinationPath: folder.file("victim"))
        case .groupWritable: try files.setAttributes([.posixPermissions: 0o660], ofItemAtPath: path)
        case .othersWritable: try files.setAttributes([.posixPermissions: 0o606], ofItemAtPath: path)
        }
        let before = try String(contentsOfFile: path, encoding: .utf8)
        let plan = try PutPlan(file: folder.file("film"), url: "http://h/uploads")
        try expectNil(UploadNote(plan, environment: ["XDG_STATE_HOME": folder.file("state")]))
        try expectEqual(String(contentsOfFile: path, encoding: .utf8), before)
    }
}
