import EventLoop
import Foundation
import HTTPSession
import HTTPTypes
import Reachability

/// The program that is killed: it transfers what its manifest says and its log does not call done, and knows nothing else of the past.
enum ChaosClient {
    static func run(_ path: String) async throws {
        let manifest = try JSONDecoder().decode(Manifest.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        let log = try ChaosLog(manifest.log)
        let done = try log.done()
        log.write("life")
        var configuration = SessionConfiguration.ephemeral
        configuration.insecureHTTP = .allowed
        configuration.retryPolicy = RetryPolicy(
            maximumRetries: nil, baseDelay: .milliseconds(50), maximumDelay: .milliseconds(500))
        configuration.requestTimeout = .seconds(10)
        configuration.connectTimeout = .seconds(3)
        let monitor = try PathMonitor()
        let session = try HTTPSessionManager(configuration: configuration, reachability: monitor, monitors: [log])
        var tasks: [(String, TransferTask)] = []
        for (number, download) in manifest.downloads.enumerated() where !done.contains("d\(number)") {
            guard let url = URL(string: download.url) else { continue }
            let place = DownloadDestination(
                URL(fileURLWithPath: download.file), existingFile: .replace, unfinished: .kept)
            let task = session.download(TransferRequest(url: url), to: place, startsNow: false)
            tasks.append(("d\(number)", task))
        }
        for upload in manifest.uploads where !done.contains("u\(upload.number)") {
            guard let url = URL(string: upload.url) else { continue }
            let request = TransferRequest(url: url, method: .post, body: .file(URL(fileURLWithPath: upload.file)))
            let task = session.upload(
                request, resumably: .tus(metadata: ["number": "\(upload.number)"]), startsNow: false)
            tasks.append(("u\(upload.number)", task))
        }
        // In another order each time, so that none always comes last.
        tasks.shuffle()
        for (name, task) in tasks { log.names.withLock { $0[task.id] = name } }
        for (_, task) in tasks { task.resume() }
        var hasFailed = false
        for (name, task) in tasks {
            do throws(HTTPSessionError) {
                let response = try await task.value
                guard (200...299).contains(response.statusCode) else {
                    throw HTTPSessionError(.unacceptableStatus, "\(response.statusCode)")
                }
            } catch {
                log.write("failed \(name) \(error)")
                hasFailed = true
            }
        }
        // What has been told is in the log.
        session.invalidate(cancelsTasks: false)
        for await _ in log.over.stream { break }
        exit(hasFailed ? 1 : 0)
    }
}

/// The client's log, a line each: `life` where one begins, `done NAME`, `open NAME OFFSET`, `read NAME BYTES`, `failed NAME WHY`.
final class ChaosLog: EventMonitor {
    let names = Locked<[UInt64: String]>([:])
    /// Says when the session has.
    let over = AsyncStream.makeStream(of: Void.self)
    private let path: String
    private let file: FileHandle

    init(_ path: String) throws {
        self.path = path
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw POSIXError(.EIO) }
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// What earlier lives have finished.
    func done() throws -> Set<String> {
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        return Set(lines.filter { $0.hasPrefix("done ") }.map { String($0.dropFirst("done ".count)) })
    }

    /// In one write, so that no line is cut by a kill.
    func write(_ line: String) { try? file.write(contentsOf: Data((line + "\n").utf8)) }

    private func name(_ task: TransferTask) -> String { names.withLock { $0[task.id] ?? "?" } }

    func handle(_ event: SessionEvent) {
        switch event {
        case .receivedResponse(let task, let head) where head.statusCode == 200: write("open \(name(task)) 0")
        case .downloadContinued(let task, let offset, _): write("open \(name(task)) \(offset)")
        case .transactionFinished(let task, let transaction):
            write("read \(name(task)) \(transaction.countOfResponseBodyBytesReceived)")
        case .taskCompleted(let task, .success): write("done \(name(task))")
        case .sessionInvalidated: over.continuation.yield()
        default: break
        }
    }
}
