// A program that compiles with a later version of Reachability, in which a line follows each of these:
//   Status/InterfaceType.swift: `case other` `case satellite`
//   Status/ServerStatus.swift: `case unreachable(Cause)` `case inMaintenance`
//   Status/Cause+Codes.swift: `extension Cause.Code {` `public static let eclipse = Cause.Code("eclipse")`
import Reachability

func text(_ type: InterfaceType) -> String {
    switch type {
    case .wired: "cable"
    case .wifi: "Wi-Fi"
    case .cellular, .loopback, .tunnel, .bridge, .bluetooth, .usb, .virtual, .other: "other"
    @unknown default: "something new"
    }
}

func text(_ status: ServerStatus) -> String {
    switch status {
    case .up, .degraded: "up"
    case .down(let cause), .unreachable(let cause): text(cause.code)
    case .unknown: "unknown"
    @unknown default: "something new"
    }
}

func text(_ code: Cause.Code) -> String {
    switch code {
    case .noCarrier: "no cable"
    default: code.rawValue
    }
}

private let later1: InterfaceType = .satellite  // later version
private let later2: ServerStatus = .inMaintenance  // later version
private let later3: Cause.Code = .eclipse  // later version
