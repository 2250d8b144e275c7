@testable import Reachability

/// The bytes of answers of name servers.
enum DNSBytes {
    /// A record with a name that is a pointer to the question's, unless it has an owner.
    static func record(
        _ type: UInt16, ttl: UInt32 = 60, owner: [UInt8] = [0xc0, 12], of recordClass: UInt16 = 1, _ data: [UInt8]
    ) -> [UInt8] {
        var record = owner
        record += bytes(type)
        record += bytes(recordClass)
        record += bytes(UInt16(truncatingIfNeeded: ttl >> 16))
        record += bytes(UInt16(truncatingIfNeeded: ttl))
        record += bytes(UInt16(clamping: data.count))
        return record + data
    }

    /// The answer to a question, which it repeats. The flags are QR, RD and RA.
    static func answer(
        to question: [UInt8], code: UInt16 = 0, flags: UInt16 = 0x8180, _ answers: [[UInt8]] = [], authority: [[UInt8]] = [],
        additional: [[UInt8]] = []
    ) -> [UInt8] {
        var end = 12
        while end < question.count, question[end] != 0 { end += Int(question[end]) + 1 }
        var message = Array(question.prefix(2))
        message += bytes(flags | code)
        for count in [1, answers.count, authority.count, additional.count] { message += bytes(UInt16(clamping: count)) }
        message += question[12..<(end + 5)]
        for record in answers + authority + additional { message += record }
        return message
    }

    static func name(_ text: String) -> [UInt8] {
        text.split(separator: ".").flatMap { [UInt8(clamping: $0.utf8.count)] + Array($0.utf8) } + [0]
    }

    static func bytes(_ number: UInt16) -> [UInt8] {
        [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
    }

    /// An SOA record with the serial number 77.
    static let soa: [UInt8] = {
        var data = name("ns.example.com")
        data += name("root.example.com")
        data += [0, 0, 0, 77]
        data += [UInt8](repeating: 0, count: 16)
        return record(6, data)
    }()

    /// A signature of an A record.
    static func signature(until end: UInt32) -> [UInt8] {
        var data: [UInt8] = [0, 1, 13, 2, 0, 0, 0, 60]
        for time in [end, end &- 86_400] {
            data += bytes(UInt16(truncatingIfNeeded: time >> 16))
            data += bytes(UInt16(truncatingIfNeeded: time))
        }
        data += [0x12, 0x34]
        data += name("example.com")
        return record(46, data + [1, 2, 3, 4])
    }
}
