from unsloth import FastLanguageModel, is_bfloat16_supported
from trl import GRPOConfig, GRPOTrainer

model, tokenizer = FastLanguageModel.from_pretrained(
    model_name="unsloth/DeepSeek-R1-Distill-Llama-8B-unsloth-bnb-4bit",
    max_seq_length=10240,
    load_in_4bit=True,
    fast_inference=True,
    max_lora_rank=16,
    gpu_memory_utilization=0.6,
)
model = FastLanguageModel.get_peft_model(
    model, r=16, lora_alpha=32, lora_dropout=0.1, use_gradient_checkpointing="unsloth"
)
args = GRPOConfig(
    use_vllm=True,
    temperature=1.0,
    mask_truncated_completions=True,
    epsilon_high=0.28,
    learning_rate=5e-6,
    adam_beta1=0.9,
    adam_beta2=0.99,
    weight_decay=0.01,
    warmup_ratio=0.05,
    num_train_epochs=1,
    lr_scheduler_type="cosine",
    optim="paged_adamw_8bit",
)
trainer = GRPOTrainer(model=model, processing_class=tokenizer, reward_funcs=[score], args=args, train_dataset=dataset)
trainer.train(resume_from_checkpoint=True)
