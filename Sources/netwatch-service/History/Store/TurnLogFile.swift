import CLinux
import Glibc

/// A log of turns in a memory-mapped file. The thread that appends owns it.
///
/// A written turn survives the end of the process (SIGKILL) at once, and a loss of power after the kernel has written the page, within
/// about 30 seconds. Nothing here waits for the disk.
///
/// Writing to a mapped page for which the disk has no room raises SIGBUS. All pages are therefore allocated by posix_fallocate(3) before
/// they are mapped. Only the end of the file is mapped, so the memory does not grow with the log.
// @unchecked: one thread appends and closes.
final class TurnLogFile: @unchecked Sendable {
    let header: TurnLog.Header
    private let path: String
    private let descriptor: Int32
    private var coder: TurnCoder
    /// The end of the last turn.
    private(set) var size: Int
    private var allocated = 0
    private var mapping: UnsafeMutableRawBufferPointer?
    /// The place of the mapping's first byte.
    private var mappingStart = 0
    /// The bytes of the last turn.
    private var last: [UInt8] = []
    /// Whether another program has removed, truncated or overwritten the file. No further turn can be appended.
    private(set) var isLost = false

    /// Creates a log. If an error occurs, the file is removed.
    init(creating path: String, _ header: TurnLog.Header) throws(StoreError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw StoreError(.inputOutput, "\(path): \(SystemText.of(errno))") }
        (self.path, self.descriptor, self.header) = (path, descriptor, header)
        coder = TurnCoder(after: header.time, header.format)
        size = TurnLog.headerSize
        do throws(StoreError) { try makeRoom(for: TurnLog.headerSize) } catch {
            unlink(path)
            throw error
        }
        write(header.bytes, at: 0)
    }

    deinit {
        unmap()
        close(descriptor)
    }

    /// Appends a turn. If an error occurs, nothing was appended.
    func append(_ turn: HistoryTurn) throws(StoreError) {
        // The coder must not pass over a turn that is not in the file, so the room is made before the turn is encoded.
        let bound = turn.events.count * TurnCoder.bytesPerEvent + TurnCoder.bytesPerTurn
        guard bound <= TurnLog.turnLimit else {
            throw StoreError(.inputOutput, "\(path): a turn has \(turn.events.count) events, which are too many")
        }
        try requireFile()
        try makeRoom(for: size + bound)
        let frame = TurnLog.frame(coder.encode(turn), generation: header.generation, at: size)
        guard size + frame.count <= allocated else { preconditionFailure("a turn of \(bound) bytes has \(frame.count)") }
        write(frame, at: size)
        size += frame.count
        last = frame
    }

    /// Writes the log to the disk. Only a regular stop needs it.
    func sync() { fsync(descriptor) }

    /// Checks that the file has a name and its pages, because writing to a mapped page behind the end of a file raises SIGBUS, and that it
    /// begins and ends as it was written.
    func requireFile() throws(StoreError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw StoreError(.inputOutput, "\(path): \(SystemText.of(errno))") }
        let change: String
        if status.st_size < off_t(allocated) {
            change = "truncated"
        } else if status.st_nlink == 0 {
            change = "removed"
        } else if !has(header.bytes, at: 0) || !has(last, at: size - last.count) {
            change = "overwritten"
        } else {
            return
        }
        isLost = true
        throw StoreError(.inputOutput, "\(path): another program has \(change) the file")
    }

    /// Returns whether the file has these bytes at a place, or cannot be read.
    private func has(_ bytes: [UInt8], at place: Int) -> Bool {
        var present = [UInt8](repeating: 0, count: bytes.count)
        return pread(descriptor, &present, present.count, off_t(place)) != present.count || present == bytes
    }

    private func write(_ bytes: [UInt8], at place: Int) {
        guard let mapping, place >= mappingStart else { return }
        bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: mapping[(place - mappingStart)...]).copyMemory(from: $0) }
    }

    /// Allocates and maps the file until `end`.
    private func makeRoom(for end: Int) throws(StoreError) {
        guard end > allocated else { return }
        let page = Int(sysconf(Int32(_SC_PAGESIZE)))
        // A log of few targets stays small, a large one grows in few steps.
        let step = min(max(allocated / 2, 64 << 10), 1 << 20)
        let target = (max(end, allocated + step) + page - 1) / page * page
        // It returns its error, and does not set errno.
        let number = posix_fallocate(descriptor, off_t(allocated), off_t(target - allocated))
        guard number == 0 else { throw StoreError(.inputOutput, "\(path): cannot grow: \(SystemText.of(number))") }
        let start = size / page * page
        let mapped = mmap(nil, target - start, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, off_t(start))
        guard let mapped, mapped != MAP_FAILED else {
            throw StoreError(.inputOutput, "\(path): cannot be mapped: \(SystemText.of(errno))")
        }
        unmap()
        mapping = UnsafeMutableRawBufferPointer(start: mapped, count: target - start)
        (mappingStart, allocated) = (start, target)
    }

    private func unmap() {
        if let mapping { munmap(mapping.baseAddress, mapping.count) }
        mapping = nil
    }
}

extension TurnLogFile {
    /// Reads the turns of a log until its end, or until its first damaged byte.
    ///
    /// - Parameters:
    ///   - path: the path of the log.
    ///   - body: called with each turn; reading ends if it returns `false`.
    /// - Returns: the header; `nil` if the file is no log, or no regular file.
    /// - Throws: ``StoreError`` if the file cannot be read, and the errors of `body`.
    @discardableResult
    static func read(_ path: String, _ body: (TurnLog.Header, HistoryTurn) throws -> Bool) throws -> TurnLog.Header? {
        guard let reader = try TurnLogReader(path) else { return nil }
        while let turn = try reader.next(), try body(reader.header, turn) {}
        return reader.header
    }
}
