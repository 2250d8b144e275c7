import Foundation
import HTTPSession

/// The certificates that scripts/new-certificates mints, once for each test process, in memory.
struct MintedCertificates {
    static let shared = Result { try MintedCertificates() }

    // The type is bytes, not Data, because LeakSanitizer does not follow the pointer of a global Data.
    private let files: [String: [UInt8]]

    private init() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("netwatch-certificates-\(UUID())")
        defer { try? FileManager.default.removeItem(at: directory) }
        let script = Process()
        script.executableURL = root.appendingPathComponent("scripts/new-certificates")
        script.arguments = [directory.path]
        try script.run()
        script.waitUntilExit()
        guard script.terminationStatus == 0 else {
            throw Failure(message: "new-certificates ended with \(script.terminationStatus)")
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        files = try names.reduce(into: [:]) { $0[$1] = Array(try Data(contentsOf: directory.appendingPathComponent($1))) }
    }

    struct Failure: Error {
        let message: String
    }

    static func data(_ name: String) throws -> Data {
        guard let bytes = try shared.get().files[name] else { throw Failure(message: "no \(name)") }
        return Data(bytes)
    }

    /// The certificates in files with these names, without `.pem`.
    static func set(_ names: String...) throws -> Set<Certificate> {
        Set(try names.flatMap { try Certificate.all(in: data("\($0).pem")) })
    }

    static func one(_ name: String) throws -> Certificate { try Certificate(data("\(name).pem")) }

    /// Runs `body` with a directory that contains these files, and then removes the directory.
    @discardableResult
    static func inDirectory<Value>(_ contents: [String: Data], _ body: (String) throws -> Value) throws -> Value {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("netwatch-files-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        for (name, data) in contents { try data.write(to: directory.appendingPathComponent(name)) }
        return try body(directory.path)
    }
}
