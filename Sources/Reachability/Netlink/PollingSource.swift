final class PollingSource: KernelSource {
    init?(_ error: NetlinkError) { return nil }
    var eventDescriptor: Int32? { nil }
    var dumpDescriptor: Int32? { nil }
    func readEvents(_ body: (UnsafeRawBufferPointer) -> Void) -> NetlinkSource.Drained { .read }
    func startDump(_ table: KernelTable, sequence: UInt32) -> Int32 { 0 }
    func readDump(_ body: (UnsafeRawBufferPointer) -> Void) -> Int32 { 0 }
    func ask(_ query: RouteQuery) -> [UInt8] { [] }
    func ask(_ key: Neighbour.Key) -> [UInt8] { [] }
}
