#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The identity of the current boot of the system.
enum BootID {
  /// A text that differs after each boot, or `nil` if the system does not provide one.
  static var name: String? {
    #if canImport(Darwin)
    var bytes = [UInt8](repeating: 0, count: 64)
    var count = bytes.count
    guard sysctlbyname("kern.bootsessionuuid", &bytes, &count, nil, 0) == 0 else { return nil }
    #else
    guard let file = try? FileDescriptor("/proc/sys/kernel/random/boot_id", .read),
      let bytes = try? FileMemory(file, at: 0, count: 64).withBytes({ Array($0) })
    else { return nil }
    #endif
    let text = String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
    return text.isEmpty ? nil : text
  }
}
