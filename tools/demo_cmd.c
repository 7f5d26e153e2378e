/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "demo.h"

#define DEMO_MACHINE "mi300x:8"

/* Why the real machine will not do; "" when it will. */
static const char *real_machine_lacks(void)
{
    struct kfd *kfd;
    bool usable;

    if (kfd_open(kfd_sys_linux(), &kfd))
        return kfd_error_text();
    usable = kfd_device_count(kfd) > 0;
    kfd_close(kfd);
    return usable ? "" : "no usable GPU";
}

static bool begin(struct demo *demo)
{
    char name[128], text[24];
    size_t available, total;

    if (!demo_call(demo, hipInit(0), "hipInit") ||
        !demo_call(demo, hipGetDeviceCount(&demo->gpus), "hipGetDeviceCount"))
        return false;
    for (int gpu = 0; gpu < demo->gpus; gpu++) {
        if (!demo_call(demo, hipSetDevice(gpu), "hipSetDevice") ||
            !demo_call(demo, hipDeviceGetName(name, sizeof(name), gpu), "hipDeviceGetName") ||
            !demo_call(demo, hipMemGetInfo(&available, &total), "hipMemGetInfo"))
            return false;
        demo_say(demo, "GPU %d: %s, %s free", gpu, name, tool_size(available, text));
        /* Everything together is about seven large pieces. */
        if (gpu == 0 && available < 256 * DEMO_MIB) {
            demo->large = 4 * DEMO_MIB;
            demo_say(demo, "little memory: large pieces are 4 MiB, not 20");
        }
    }
    return demo_call(demo, hipSetDevice(0), "hipSetDevice");
}

static bool run_steps(struct demo *demo)
{
    static const struct {
        const char *title;
        bool (*run)(struct demo *demo);
        bool picture;
    } steps[] = {
        {"reserve 64 GiB of addresses", demo_reserve, false},
        {"grow: chunks of GPU 0, read-write for it, read-only for a peer", demo_grow, false},
        {"stripes on the other GPUs, read-only for GPU 0", demo_stripes, false},
        {"host access on one piece", demo_host, true},
        {"write a pattern to every piece through one view", demo_write_all, false},
        {"check every piece through every other view", demo_check_all, false},
        {"rights and holes", demo_boundaries, false},
        {"take chunks out of the middle", demo_take_out, false},
        {"their neighbours kept their bytes, and the holes fault", demo_check_all, false},
        {"rights and holes again", demo_boundaries, false},
        {"put others in", demo_put_in, true},
        {"write and check again", demo_write_all, false},
        {"check every piece through every view", demo_check_all, false},
        {"share one handle with a child process", demo_share, false},
    };
    struct demo_holdings before;
    bool good;

    demo_step(demo, "start");
    good = begin(demo);
    demo_step_end(demo);
    if (!good || !demo_holdings(demo, &before))
        return false;
    for (size_t i = 0; good && i < sizeof(steps) / sizeof(steps[0]); i++) {
        demo_step(demo, "%s", steps[i].title);
        good = steps[i].run(demo);
        demo_step_end(demo);
        if (good && steps[i].picture)
            demo_picture(demo);
    }
    demo_step(demo, "take everything down");
    if (demo->base)
        good = demo_tear_down(demo, &before) && good;
    demo_step_end(demo);
    return good;
}

static int usage(void)
{
    printf("usage: kfdirect demo [--json] [--machine NAME] [--kernel VERSION]\n"
           "\n"
           "Grows, shares and takes down one 64-GiB range, checking every byte. Exits with 0 when\n"
           "all is good.\n"
           "\n"
           "  --json            for programs\n"
           "  --machine NAME    of a fake machine such as mi210:4, or the path of a machine file\n"
           "  --kernel VERSION  of the fake machine: 6.1, 6.8, 6.12, current, or a kernel file\n");
    return TOOL_OK;
}

/* Announces where it runs; picks the fake machine when there is no real one. */
static int choose(struct demo *demo, const char *name, const char *kernel)
{
    int status = tool_machine_open(name, kernel, &demo->machine);
    const char *lacks;

    if (status)
        return status;
    lacks = demo->machine.fake ? "" : real_machine_lacks();
    if (lacks[0]) {
        if (!demo->as_json)
            printf("This machine: %s.\n", lacks);
        tool_machine_close(&demo->machine);
        status = tool_machine_open(DEMO_MACHINE, kernel, &demo->machine);
        if (status)
            return status;
    }
    if (demo->as_json) {
        json_object(&demo->json, NULL);
        if (demo->machine.fake)
            json_string(&demo->json, "fake", demo->machine.name);
        else
            json_null(&demo->json, "fake");
        json_array(&demo->json, "steps");
    } else if (demo->machine.fake) {
        printf("Running on the fake machine %s: no GPU, no driver.\n", demo->machine.name);
    } else {
        printf("Running on this machine's GPUs.\n");
    }
    return TOOL_OK;
}

int demo_cmd(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"machine", required_argument, NULL, 'm'},
                                            {"kernel", required_argument, NULL, 'k'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct demo demo = {.small = 2 * DEMO_MIB, .large = 20 * DEMO_MIB, .next_pattern = 1};
    const char *name = NULL, *kernel = NULL;
    int opt, status;
    bool good;

    while ((opt = tool_option(argc, argv, "", options)) != -1) {
        if (opt == 'j')
            demo.as_json = true;
        else if (opt == 'm')
            name = optarg;
        else if (opt == 'k')
            kernel = optarg;
        else
            return opt == 'h' ? usage() : TOOL_USAGE;
    }
    if (optind < argc)
        return tool_misused(argv[0], "argument '%s' where none is expected", argv[optind]);
    json_init(&demo.json, stdout);
    status = choose(&demo, name, kernel);
    if (status)
        return status;
    if (kfd_sys_count_new(demo.machine.sys, &demo.counter)) {
        fprintf(stderr, "kfdirect: %s\n", kfd_error_text());
        return TOOL_FAILED;
    }
    kfd_sys_set_default(demo.counter);
    good = run_steps(&demo) && demo.failed == 0;
    if (demo.as_json) {
        json_end(&demo.json);
        json_number(&demo.json, "passed", demo.passed);
        json_number(&demo.json, "failed", demo.failed);
        json_number(&demo.json, "not_checked", demo.unchecked);
        json_bool(&demo.json, "good", good);
        json_end(&demo.json);
    } else {
        printf("\n%s: %" PRIu64 " checks passed, %" PRIu64 " failed, %" PRIu64 " not checked\n",
               good ? "good" : "NOT GOOD", demo.passed, demo.failed, demo.unchecked);
    }
    /* The HIP layer keeps using the counter and the machine until the process ends. */
    return good ? TOOL_OK : TOOL_FAILED;
}
