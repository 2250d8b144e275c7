import Glibc

// The functions that libFuzzer calls. The first argument that begins with `--driver=` selects the driver.

// libFuzzer runs on one thread.
nonisolated(unsafe) private var driver: FuzzDriver?

/// Selects the driver.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(
    _ count: UnsafeMutablePointer<Int32>, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>
) -> Int32 {
    let words = (0..<Int(count.pointee)).compactMap { arguments.pointee[$0].map { String(cString: $0) } }
    let name = words.first { $0.hasPrefix("--driver=") }?.dropFirst("--driver=".count)
    driver = FuzzDriver.all.first { $0.name == name ?? "" }
    guard driver == nil else { return 0 }
    report("usage: fuzz --driver=NAME …; the names are \(FuzzDriver.all.map { $0.name }.joined(separator: ", "))")
    exit(64)
}

/// Runs the driver with one input.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    let input = Array(UnsafeBufferPointer(start: start, count: count))
    do {
        try driver?.run(input)
    } catch {
        report("fuzz: broken rule: \(error)")
        abort()
    }
    return 0
}

/// Writes a line to standard error, as libFuzzer does.
private func report(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
}
