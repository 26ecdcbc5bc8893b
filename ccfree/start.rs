//! The first instructions of a glibc program, for linking without a C tool chain.
//!
//! A C compiler would add `crt1.o`. Build scripts and procedural macros need no more of it than this: hand the kernel's
//! `argc`, `argv` and the dynamic linker's exit hook to `__libc_start_main`, which calls `main` and never returns.
//! Source: System V ABI, AMD64 supplement, "Process Initialization". Compiled by `setup` with `rustc --emit obj`; x86_64 only.
#![no_std]

core::arch::global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",   // the outermost frame
    "mov r9, rdx",    // sixth argument: the dynamic linker's exit hook
    "pop rsi",        // second: argc
    "mov rdx, rsp",   // third: argv
    "and rsp, -16",   // a call wants the stack aligned to 16 bytes, and two words follow
    "push rax",
    "push rsp",       // seventh, on the stack: its end
    "xor r8d, r8d",   // no termination and no initialisation function of our own
    "xor ecx, ecx",
    "mov rdi, qword ptr [rip + main@GOTPCREL]",
    "call qword ptr [rip + __libc_start_main@GOTPCREL]",
    "hlt",
);
