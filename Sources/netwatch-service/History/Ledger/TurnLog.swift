/// The bytes of a log: a header, then a frame for each turn. Zeros or damaged bytes end it.
///
/// A frame is the length of the encoded turn (LEB128), a CRC-32, and the turn (``TurnCoder``). The checksum includes the generation of the
/// log and the place of the frame, so bytes that were written for another log or to another place are never read as turns.
enum TurnLog {
    /// The bytes of the header.
    static let headerSize = 96
    /// The maximum number of bytes of an encoded turn.
    static let turnLimit = 16 << 20
    /// The first bytes. The digit is that of the ``SampleFormat``.
    private static func magic(_ format: SampleFormat) -> [UInt8] { Array("netwatch turns \(format.rawValue)".utf8) }

    /// The first bytes of a log.
    struct Header: Hashable, Sendable {
        /// The format of the samples.
        var format = SampleFormat.responseTimes
        /// The number of the log. Each new log has the next one.
        var generation: UInt64
        /// The identifier of the database whose targets the log numbers.
        var database: UInt32
        /// The kernel's identifier of the boot in which the log was written, at most 36 bytes.
        var boot: String
        /// The time of the log's creation.
        var time: ClockReading

        init(generation: UInt64, database: UInt32, boot: String, time: ClockReading) {
            (self.generation, self.database, self.boot, self.time) = (generation, database, boot, time)
        }

        /// The encoded header.
        var bytes: [UInt8] {
            let text = Array(boot.utf8.prefix(36))
            var bytes = magic(format) + text + [UInt8](repeating: 0, count: 36 - text.count)
            bytes += [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: database >> $0) }
            for number in [generation] + [time.wall, time.monotonic, time.bootTime].map({ UInt64(bitPattern: $0) }) {
                bytes += TurnLog.bytes(of: number)
            }
            bytes += CRC32.bytes(of: bytes)
            return bytes + [UInt8](repeating: 0, count: headerSize - bytes.count)
        }

        /// Decodes a header; `nil` if the bytes are those of none.
        init?(_ bytes: [UInt8]) {
            let formats: [SampleFormat] = [.roundTrips, .responseTimes]
            guard bytes.count >= headerSize, let format = formats.first(where: { bytes.starts(with: magic($0)) }),
                Array(bytes[88..<92]) == CRC32.bytes(of: bytes[..<88])
            else {
                return nil
            }
            self.format = format
            let numbers = [56, 64, 72, 80].map { place in
                bytes[place..<place + 8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            }
            generation = numbers[0]
            database = bytes[52..<56].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            boot = String(decoding: bytes[16..<52].prefix { $0 != 0 }, as: UTF8.self)
            let clocks = numbers.dropFirst().map { Int64(bitPattern: $0) }
            time = ClockReading(wall: clocks[0], monotonic: clocks[1], bootTime: clocks[2])
        }
    }

    /// Returns the frame of an encoded turn. - Parameter place: the distance of the frame from the start of the log.
    static func frame(_ turn: [UInt8], generation: UInt64, at place: Int) -> [UInt8] {
        var length = VarintWriter()
        length.append(UInt64(turn.count))
        let sum = checksum(turn[...], generation, place)
        return length.bytes + [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: sum >> $0) } + turn
    }

    /// The result of reading a frame.
    enum Frame: Hashable {
        /// The encoded turn, and the size of the frame.
        case turn(ArraySlice<UInt8>, size: Int)
        /// The bytes end within the frame. Its size is at most this one.
        case incomplete(size: Int)
        /// The log ends here.
        case end
    }

    /// Reads the frame at the start of the bytes.
    static func frame(in bytes: ArraySlice<UInt8>, generation: UInt64, at place: Int) -> Frame {
        var reader = VarintReader(bytes)
        guard let length = reader.next() else { return bytes.count < 10 ? .incomplete(size: 10) : .end }
        guard 1...UInt64(turnLimit) ~= length else { return .end }
        let content = reader.remaining
        let size = bytes.count - content.count + 4 + Int(length)
        guard content.count >= 4 + Int(length) else { return .incomplete(size: size) }
        let turn = content.dropFirst(4).prefix(Int(length))
        let sum = content.prefix(4).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        return sum == checksum(turn, generation, place) ? .turn(turn, size: size) : .end
    }

    private static func checksum(_ turn: ArraySlice<UInt8>, _ generation: UInt64, _ place: Int) -> UInt32 {
        let context = CRC32.checksum(of: bytes(of: generation) + bytes(of: UInt64(place)))
        return CRC32.checksum(of: turn, after: context)
    }

    private static func bytes(of number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
