/// The facts about a device without `IFLA_INFO_KIND`: hardware, and the few software devices whose modules set no kind.
struct HardwareFacts {
    let link: Link
    let evidence: InterfaceEvidence

    /// The hardware types `ARPHRD_*` of linux/if_arp.h that determine a classification.
    private enum HardwareType {
        static let ethernet: UInt16 = 1
        static let ppp: UInt16 = 512
        /// Raw IP of a modem. Android's kernels use 530.
        static let rawIP: Set<UInt16> = [519, 530]
        /// The types of IPIP, IP6IP6, SIT, GRE, and GRE over IPv6.
        static let tunnels: Set<UInt16> = [768, 769, 776, 778, 823]
        static let loopback: UInt16 = 772
        /// The types of netlink and vsock taps.
        static let monitors: Set<UInt16> = [824, 826]
    }

    /// The drivers that set `FLAG_WWAN` or use a modem's protocol. They decide even if DEVTYPE is unknown.
    private static let modemDrivers: Set<String> = [
        "qmi_wwan", "cdc_mbim", "huawei_cdc_ncm", "sierra_net", "hso", "kalmia", "wwan", "iosm", "mtk_t7xx", "mhi_net",
    ]

    /// The drivers of the standard USB classes with which phones share their connection.
    private static let tetherDrivers: Set<String> = [
        "rndis_host", "ipheth", "cdc_ether", "cdc_ncm", "cdc_eem", "cdc_subset",
    ]

    private var bus: String? { evidence.bus ?? link.parentBus }
    private func answered(_ source: String) -> Bool { evidence.sources.contains(source) }

    var classification: Classification {
        if link.flags.contains(.loopback) || link.hardwareType == HardwareType.loopback {
            return Classification(type: .loopback, isVirtual: true, evidence: ["loopback device"])
        }
        return byDeviceType ?? byDriver ?? byHardwareType
    }

    /// The classification from the wireless stack and from DEVTYPE in sysfs; `nil` if neither decides.
    var byDeviceType: Classification? {
        let facts = evidence.deviceType.map { ["DEVTYPE \($0) (sysfs)"] } ?? []
        func expensive(_ type: InterfaceType) -> Classification {
            Classification(type: type, isVirtual: false, isExpensive: true, evidence: facts + device)
        }
        if evidence.isWireless || evidence.deviceType == "wlan" {
            let stack = !evidence.isWireless ? [] : [answered("nl80211") ? "listed by nl80211" : "phy80211 (sysfs)"]
            return Classification(type: .wifi, isVirtual: false, evidence: facts + stack + device)
        }
        switch evidence.deviceType {
        case "wwan": return expensive(.cellular)
        case "bluetooth": return expensive(.bluetooth)
        case "gadget": return Classification(type: .usb, isVirtual: false, evidence: facts + device)
        case "l2tpeth": return Classification(type: .tunnel, isVirtual: true, evidence: facts)
        case "dsa": return Classification(type: .wired, isVirtual: false, evidence: facts + device)
        case "ppp": return InterfaceClassifier.pointToPoint(evidence, fact: "DEVTYPE ppp (sysfs)")
        default: return nil
        }
    }

    /// The classification from the driver and the bus alone; `nil` if neither decides.
    private var byDriver: Classification? {
        if let driver = evidence.driver {
            if Self.modemDrivers.contains(driver) {
                return Classification(type: .cellular, isVirtual: false, isExpensive: true, evidence: device)
            }
            if Self.tetherDrivers.contains(driver) {
                return Classification(
                    type: .usb, isVirtual: false, isExpensive: true, evidence: device + ["likely a phone's tether"])
            }
            if driver == "g_ether" { return Classification(type: .usb, isVirtual: false, evidence: device) }
            if driver == "netdevsim" { return Classification(type: .virtual, isVirtual: true, evidence: device) }
        }
        switch bus {
        case "gadget": return Classification(type: .usb, isVirtual: false, evidence: device)
        case "netdevsim": return Classification(type: .virtual, isVirtual: true, evidence: device)
        case "wwan": return Classification(type: .cellular, isVirtual: false, isExpensive: true, evidence: device)
        case "bluetooth": return Classification(type: .bluetooth, isVirtual: false, isExpensive: true, evidence: device)
        default: return nil
        }
    }

    private var byHardwareType: Classification {
        let fact = "ARPHRD \(link.hardwareType)"
        let type = link.hardwareType
        if type == HardwareType.ethernet { return ethernet }
        if type == HardwareType.ppp { return InterfaceClassifier.pointToPoint(evidence, fact: fact) }
        if HardwareType.rawIP.contains(type) {
            return Classification(type: .cellular, isVirtual: false, isExpensive: true, evidence: ["\(fact) (raw IP)"] + device)
        }
        if HardwareType.tunnels.contains(type) { return Classification(type: .tunnel, isVirtual: true, evidence: [fact]) }
        if HardwareType.monitors.contains(type) { return Classification(type: .virtual, isVirtual: true, evidence: [fact]) }
        return Classification(type: .other, isVirtual: hasNoDevice, evidence: [fact] + device)
    }

    /// The classification of an Ethernet device without kind and DEVTYPE: a network card, or a third-party module's device
    /// (vboxnet, l2tpeth in another namespace).
    private var ethernet: Classification {
        if hasNoDevice {
            let readers = evidence.sources.joined(separator: ", ")
            return Classification(type: .virtual, isVirtual: true, evidence: ["ARPHRD 1", "no device behind it (\(readers))"])
        }
        let caveat = answered("sysfs") || answered("nl80211") ? [] : ["Wi-Fi not ruled out: neither sysfs nor nl80211 answered"]
        return Classification(type: .wired, isVirtual: false, evidence: ["ARPHRD 1 (Ethernet)"] + device + caveat)
    }

    /// Whether a reader that can see hardware reports none. Since Linux 5.14 the link message names the parent's bus; on older
    /// kernels its absence proves nothing.
    private var hasNoDevice: Bool {
        guard bus == nil else { return false }
        return answered("sysfs") || (answered("ethtool") && evidence.driver == nil)
    }

    private var device: [String] {
        switch (evidence.driver, bus) {
        case (let driver?, let bus?): ["driver \(driver), bus \(bus)"]
        case (let driver?, nil): ["driver \(driver)"]
        case (nil, let bus?): ["bus \(bus)"]
        case (nil, nil): []
        }
    }
}
